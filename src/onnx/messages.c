/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages: the fields of ONNX's messages, with the numbers of onnx.proto (version 1.22).
 *
 * A row: name in sentences, number, kind, member. A list is the member of its pointer; its count
 * is the member behind it.
 */
#include <stddef.h>

#include "onnx/wire.h"

#define F(msg, text, number, kind, member)                                                         \
    {                                                                                              \
        text, number, kind, offsetof(struct heddle_onnx_##msg, member), NULL, 0                    \
    }
#define SUB(msg, text, number, kind, member, sub)                                                  \
    {                                                                                              \
        text, number, kind, offsetof(struct heddle_onnx_##msg, member), &message_##sub, 0          \
    }
#define MESSAGE(msg, fin)                                                                          \
    static const struct wire_message message_##msg = {                                             \
        #msg, sizeof(struct heddle_onnx_##msg), fields_##msg,                                      \
        sizeof(fields_##msg) / sizeof(fields_##msg[0]), fin}

/* Messages that contain each other. */
static const struct wire_message message_sequence, message_optional, message_map, message_graph,
    message_value_type;

static const struct wire_field fields_pair[] = {
    F(pair, "key", 1, WIRE_TEXT, key),
    F(pair, "value", 2, WIRE_TEXT, value),
};
MESSAGE(pair, NULL);

/* Segments are parts of a tensor, which no exporter writes; their presence is enough to refuse. */
static const struct wire_message message_segment = {"segment", 1, NULL, 0, NULL};

static const struct wire_field fields_tensor[] = {
    F(tensor, "dims", 1, WIRE_INTS, dim),
    F(tensor, "data_type", 2, WIRE_INT, type),
    SUB(tensor, "segment", 3, WIRE_MESSAGE, segment, segment),
    F(tensor, "float_data", 4, WIRE_FLOATS, floats),
    F(tensor, "int32_data", 5, WIRE_INTS, ints32),
    F(tensor, "string_data", 6, WIRE_BYTESES, string),
    F(tensor, "int64_data", 7, WIRE_INTS, ints64),
    F(tensor, "name", 8, WIRE_TEXT, name),
    F(tensor, "raw_data", 9, WIRE_BYTES, raw),
    F(tensor, "double_data", 10, WIRE_DOUBLES, doubles),
    F(tensor, "uint64_data", 11, WIRE_INTS, uints64),
    SUB(tensor, "external_data", 13, WIRE_MESSAGES, external, pair),
    F(tensor, "data_location", 14, WIRE_INT, location),
};
MESSAGE(tensor, heddle_onnx_finish_tensor);

static const struct wire_field fields_sparse[] = {
    SUB(sparse, "values", 1, WIRE_MESSAGE, values, tensor),
    SUB(sparse, "indices", 2, WIRE_MESSAGE, indices, tensor),
    F(sparse, "dims", 3, WIRE_INTS, dim),
};
MESSAGE(sparse, NULL);

static const struct wire_field fields_sequence[] = {
    F(sequence, "name", 1, WIRE_TEXT, name),
    F(sequence, "elem_type", 2, WIRE_INT, elem_type),
    SUB(sequence, "tensor_values", 3, WIRE_MESSAGES, tensor, tensor),
    SUB(sequence, "sparse_tensor_values", 4, WIRE_MESSAGES, sparse, sparse),
    SUB(sequence, "sequence_values", 5, WIRE_MESSAGES, sequence, sequence),
    SUB(sequence, "map_values", 6, WIRE_MESSAGES, map, map),
    SUB(sequence, "optional_values", 7, WIRE_MESSAGES, optional, optional),
};
MESSAGE(sequence, NULL);

/* An optional has the fields of a sequence, each at most once. */
static const struct wire_message message_optional = {
    "optional", sizeof(struct heddle_onnx_sequence), fields_sequence,
    sizeof(fields_sequence) / sizeof(fields_sequence[0]), NULL};

static const struct wire_field fields_map[] = {
    F(map, "name", 1, WIRE_TEXT, name),
    F(map, "key_type", 2, WIRE_INT, key_type),
    F(map, "keys", 3, WIRE_INTS, key),
    F(map, "string_keys", 4, WIRE_BYTESES, string_key),
    SUB(map, "values", 5, WIRE_MESSAGE, values, sequence),
};
MESSAGE(map, NULL);

static const struct wire_field fields_dim[] = {
    {"dim_value", 1, WIRE_INT, offsetof(struct heddle_onnx_dim, value), NULL, -1},
    F(dim, "dim_param", 2, WIRE_TEXT, param),
};
MESSAGE(dim, NULL);

static const struct wire_field fields_shape[] = {
    SUB(shape, "dim", 1, WIRE_MESSAGES, dim, dim),
};
MESSAGE(shape, NULL);

static const struct wire_field fields_tensor_type[] = {
    F(tensor_type, "elem_type", 1, WIRE_INT, type),
    SUB(tensor_type, "shape", 2, WIRE_MESSAGE, shape, shape),
};
MESSAGE(tensor_type, NULL);

static const struct wire_field fields_elem_type[] = {
    SUB(elem_type, "elem_type", 1, WIRE_MESSAGE, elem, value_type),
};
MESSAGE(elem_type, NULL);

static const struct wire_field fields_map_type[] = {
    F(map_type, "key_type", 1, WIRE_INT, key),
    SUB(map_type, "value_type", 2, WIRE_MESSAGE, value, value_type),
};
MESSAGE(map_type, NULL);

static const struct wire_field fields_value_type[] = {
    SUB(value_type, "tensor_type", 1, WIRE_MESSAGE, tensor, tensor_type),
    SUB(value_type, "sequence_type", 4, WIRE_MESSAGE, sequence, elem_type),
    SUB(value_type, "map_type", 5, WIRE_MESSAGE, map, map_type),
    SUB(value_type, "sparse_tensor_type", 8, WIRE_MESSAGE, sparse, tensor_type),
    SUB(value_type, "optional_type", 9, WIRE_MESSAGE, optional, elem_type),
};
MESSAGE(value_type, NULL);

static const struct wire_field fields_value_info[] = {
    F(value_info, "name", 1, WIRE_TEXT, name),
    SUB(value_info, "type", 2, WIRE_MESSAGE, type, value_type),
};
MESSAGE(value_info, NULL);

/* Files of the first versions say no type: the content does. */
static heddle_status finish_attr(struct wire_decoder *d, void *obj)
{
    struct heddle_onnx_attr *a = obj;

    (void)d;
    if (a->type != HEDDLE_ONNX_ATTR_NONE || a->ref[0] != '\0')
        return HEDDLE_OK;
    a->type = a->t != NULL            ? HEDDLE_ONNX_ATTR_TENSOR
              : a->g != NULL          ? HEDDLE_ONNX_ATTR_GRAPH
              : a->s.ptr != NULL      ? HEDDLE_ONNX_ATTR_STRING
              : a->nints > 0          ? HEDDLE_ONNX_ATTR_INTS
              : a->nfloats > 0        ? HEDDLE_ONNX_ATTR_FLOATS
              : a->nstrings > 0       ? HEDDLE_ONNX_ATTR_STRINGS
              : a->ntensors > 0       ? HEDDLE_ONNX_ATTR_TENSORS
              : a->ngraphs > 0        ? HEDDLE_ONNX_ATTR_GRAPHS
              : a->sparse != NULL     ? HEDDLE_ONNX_ATTR_SPARSE
              : a->value_type != NULL ? HEDDLE_ONNX_ATTR_TYPE
              : a->f < 0 || a->f > 0  ? HEDDLE_ONNX_ATTR_FLOAT
                                      : HEDDLE_ONNX_ATTR_INT;
    return HEDDLE_OK;
}

static const struct wire_field fields_attr[] = {
    F(attr, "name", 1, WIRE_TEXT, name),
    F(attr, "f", 2, WIRE_FLOAT, f),
    F(attr, "i", 3, WIRE_INT, i),
    F(attr, "s", 4, WIRE_BYTES, s),
    SUB(attr, "t", 5, WIRE_MESSAGE, t, tensor),
    SUB(attr, "g", 6, WIRE_MESSAGE, g, graph),
    F(attr, "floats", 7, WIRE_FLOATS, floats),
    F(attr, "ints", 8, WIRE_INTS, ints),
    F(attr, "strings", 9, WIRE_BYTESES, strings),
    SUB(attr, "tensors", 10, WIRE_MESSAGES, tensors, tensor),
    SUB(attr, "graphs", 11, WIRE_MESSAGES, graphs, graph),
    SUB(attr, "tp", 14, WIRE_MESSAGE, value_type, value_type),
    F(attr, "type", 20, WIRE_INT, type),
    F(attr, "ref_attr_name", 21, WIRE_TEXT, ref),
    SUB(attr, "sparse_tensor", 22, WIRE_MESSAGE, sparse, sparse),
};
MESSAGE(attr, finish_attr);

static const struct wire_field fields_node[] = {
    F(node, "input", 1, WIRE_TEXTS, input),
    F(node, "output", 2, WIRE_TEXTS, output),
    F(node, "name", 3, WIRE_TEXT, name),
    F(node, "op_type", 4, WIRE_TEXT, op_type),
    SUB(node, "attribute", 5, WIRE_MESSAGES, attr, attr),
    F(node, "domain", 7, WIRE_TEXT, domain),
    F(node, "overload", 8, WIRE_TEXT, overload),
};
MESSAGE(node, NULL);

static const struct wire_field fields_graph[] = {
    SUB(graph, "node", 1, WIRE_MESSAGES, node, node),
    F(graph, "name", 2, WIRE_TEXT, name),
    SUB(graph, "initializer", 5, WIRE_MESSAGES, init, tensor),
    SUB(graph, "input", 11, WIRE_MESSAGES, input, value_info),
    SUB(graph, "output", 12, WIRE_MESSAGES, output, value_info),
    SUB(graph, "value_info", 13, WIRE_MESSAGES, value_info, value_info),
    SUB(graph, "sparse_initializer", 15, WIRE_MESSAGES, sparse_init, sparse),
};
MESSAGE(graph, NULL);

static const struct wire_field fields_opset[] = {
    F(opset, "domain", 1, WIRE_TEXT, domain),
    F(opset, "version", 2, WIRE_INT, version),
};
MESSAGE(opset, NULL);

static const struct wire_field fields_function[] = {
    F(function, "name", 1, WIRE_TEXT, name),
    F(function, "input", 4, WIRE_TEXTS, input),
    F(function, "output", 5, WIRE_TEXTS, output),
    F(function, "attribute", 6, WIRE_TEXTS, attr_name),
    SUB(function, "node", 7, WIRE_MESSAGES, node, node),
    SUB(function, "opset_import", 9, WIRE_MESSAGES, opset, opset),
    F(function, "domain", 10, WIRE_TEXT, domain),
    SUB(function, "attribute_proto", 11, WIRE_MESSAGES, attr, attr),
    F(function, "overload", 13, WIRE_TEXT, overload),
};
MESSAGE(function, NULL);

static const struct wire_field fields_model[] = {
    F(model, "ir_version", 1, WIRE_INT, ir_version),
    F(model, "producer_name", 2, WIRE_TEXT, producer),
    F(model, "producer_version", 3, WIRE_TEXT, producer_version),
    F(model, "domain", 4, WIRE_TEXT, domain),
    F(model, "model_version", 5, WIRE_INT, model_version),
    SUB(model, "graph", 7, WIRE_MESSAGE, graph, graph),
    SUB(model, "opset_import", 8, WIRE_MESSAGES, opset, opset),
    SUB(model, "metadata_props", 14, WIRE_MESSAGES, metadata, pair),
    SUB(model, "functions", 25, WIRE_MESSAGES, function, function),
};

static heddle_status finish_model(struct wire_decoder *d, void *obj)
{
    const struct heddle_onnx_model *m = obj;

    if (m->graph == NULL)
        return heddle_onnx_bad(d, "this is no ONNX model: it has no graph");
    return HEDDLE_OK;
}
MESSAGE(model, finish_model);

const struct wire_message *const heddle_onnx_messages[4] = {
    [HEDDLE_ONNX_MODEL] = &message_model,
    [HEDDLE_ONNX_TENSOR] = &message_tensor,
    [HEDDLE_ONNX_SEQUENCE] = &message_sequence,
    [HEDDLE_ONNX_OPTIONAL] = &message_optional,
};
