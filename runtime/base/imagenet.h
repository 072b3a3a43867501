/*
 * Mean and deviation of ImageNet's pixels, from 0 to 1, for red, green and blue: what torchvision's models are trained with.
 */
#ifndef CLT_BASE_IMAGENET_H
#define CLT_BASE_IMAGENET_H

static const double clt_imagenet_mean[] = {0.485, 0.456, 0.406};
static const double clt_imagenet_deviation[] = {0.229, 0.224, 0.225};

#endif
