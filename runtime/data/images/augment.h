/*
 * Random changes of images, by torchvision's rules.
 */
#ifndef CLT_DATA_IMAGES_AUGMENT_H
#define CLT_DATA_IMAGES_AUGMENT_H

#include "runtime/base/random.h"
#include "runtime/data/images/image.h"

/* RandomResizedCrop: an area of 0.08 to 1 of the image, log-uniformly 3:4 to 4:3 in shape; after 10 tries that do not fit, the largest at the centre. */
clt_image_box clt_augment_crop(clt_random *random, int width, int height);

/* ColorJitter(jitter, jitter, jitter): brightness, contrast and saturation in a random order. Planes are RGB of `pixels` each. */
void clt_augment_jitter(clt_random *random, float jitter, uint8_t *planes, size_t pixels);

/* RandomErasing(probability), filled with noise. */
void clt_augment_erase(clt_random *random, float probability, uint8_t *planes, int size);

#endif
