/* Zaremba et al. 2014, "Recurrent Neural Network Regularization"; names and layouts of RNNModel in PyTorch's example word_language_model. */
#include "runtime/models/models.h"

static clt_lstm_model_options completed(clt_lstm_model_options o) {
    if (!o.vocabulary) o.vocabulary = 10000;
    if (!o.hidden) o.hidden = 200;
    if (!o.width) o.width = o.hidden;
    if (!o.layers) o.layers = 2;
    return o;
}

static clt_tensor *refuse(clt_tensor *tokens, const clt_lstm_model_options *o) {
    clt_tensor *refused = clt_model_check_tokens(tokens, "clt_model_lstm");
    if (refused) return refused;
    if (o->layers < 1 || o->hidden < 1 || o->width < 1 || (o->tied && o->width != o->hidden))
        return clt_graph_fail(tokens->graph, clt_fail(CLT_E_INVALID, "clt_model_lstm: expected layers, hidden and width of at least 1, the last two equal where the head "
                                                      "is tied, got %d, %lld and %lld", o->layers, (long long)o->hidden, (long long)o->width));
    return NULL;
}

clt_tensor *clt_model_lstm_with(clt_tensor *tokens, clt_lstm_model_options options) {
    static const clt_init narrow = {CLT_INIT_UNIFORM, .value = 0.1f};
    if (!clt_tensor_valid(tokens)) return tokens;
    clt_lstm_model_options o = completed(options);
    clt_tensor *refused = refuse(tokens, &o);
    if (refused) return refused;
    clt_tensor *words = clt_parameter(tokens->graph, "encoder.weight", CLT_SHAPE(o.vocabulary, o.width), narrow);
    clt_tensor *x = clt_embedding_op(tokens, words);
    if (o.dropout > 0) x = clt_dropout(x, o.dropout);
    x = clt_lstm(x, "rnn", o.hidden, .layers = o.layers, .dropout = o.dropout, .position_ids = o.position_ids);
    if (o.dropout > 0) x = clt_dropout(x, o.dropout);
    clt_tensor *head = o.tied ? words : clt_parameter(tokens->graph, "decoder.weight", CLT_SHAPE(o.vocabulary, o.hidden), narrow);
    return clt_linear_op(clt_model_rows(x, o.rows), head, clt_parameter(tokens->graph, "decoder.bias", CLT_SHAPE(o.vocabulary), (clt_init){CLT_INIT_ZEROS}));
}
