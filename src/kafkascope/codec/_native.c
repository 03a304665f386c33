/* Decodes one message in its canonical form to Python values; built where a C compiler is available.
 *
 * Whatever is not the one form Kafka writes gives None, and the careful decoder then reads it. Every read is preceded by
 * a comparison with `end`; counts are compared with the bytes that are left before anything is allocated. What objects
 * take is charged as in value_cost, and a message that takes too much is left to the careful decoder as well. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
#include <string.h>

enum kind { BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, STRUCT };
static const int SIZES[] = {1, 1, 2, 2, 4, 4, 8, 8, 16};
/* Java refuses longer ones in both encodings. */
#define LONGEST_STRING 32767
/* As in value_cost. */
enum cost { NUMBER_COST = 32, FLOAT_COST = 32, UUID_COST = 112, LIST_COST = 64, SLOT_COST = 8, STRING_COST = 64,
            WIDE_LETTER_COST = 4, BYTES_COST = 48 };

typedef struct node {
    PyObject *name;
    PyObject *plain_default; /* NULL for lists and structs, which are made anew each time */
    int kind, array, nullable, compact, tag;
    Py_ssize_t least; /* bytes an element takes at the least */
    Py_ssize_t cost;  /* of a struct: memory that its dict and its defaults take */
    int count, tagged;
    struct node *children;
    PyObject *blank; /* of a struct: its names with None, copied for each value, which is quicker than to build it */
} Node;

#define RESULT_SLOTS 6

typedef struct {
    PyObject_HEAD
    Node root;
    int flexible;
    PyTypeObject *result;
    Py_ssize_t offsets[RESULT_SLOTS]; /* where the result's slots lie */
    PyObject *contents[RESULT_SLOTS]; /* what they hold; NotImplemented stands for the value */
    long long most, always, ratio;    /* memory for values: in all, for any message, for each of its bytes */
} Decoder;

typedef struct {
    const uint8_t *at, *end;
    int flexible;
    int64_t left; /* memory that the values may still take */
} Reader;

/* Raised inside and turned into None at the door: not an error anyone sees. */
static PyObject *surprise, *uuid_type, *uuid_int, *uuid_safe, *safe_unknown;

static PyObject *odd(void) {
    PyErr_SetNone(surprise);
    return NULL;
}

static uint32_t load32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t load64(const uint8_t *p) { return (uint64_t)load32(p) << 32 | load32(p + 4); }

/* An unsigned varint in its shortest form (KIP-482), or -1. */
static int64_t varint(Reader *r) {
    uint64_t value = 0;
    for (int index = 0; index < 5; index++) {
        if (r->at >= r->end) return -1;
        uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) return (index && !byte) || value > INT32_MAX ? -1 : (int64_t)value;
    }
    return -1;
}

/* A length or count: -1 is null, -2 neither. */
static int64_t length(Reader *r, int compact, int width) {
    if (compact) {
        int64_t value = varint(r);
        return value < 0 ? -2 : value - 1;
    }
    if (r->end - r->at < width) return -2;
    int64_t value = width == 2 ? (int16_t)(r->at[0] << 8 | r->at[1]) : (int32_t)load32(r->at);
    r->at += width;
    return value < -1 ? -2 : value;
}

static PyObject *make_uuid(const uint8_t *p) {
    PyObject *made = ((PyTypeObject *)uuid_type)->tp_alloc((PyTypeObject *)uuid_type, 0);
    PyObject *number = made ? _PyLong_FromByteArray(p, 16, 0, 0) : NULL;
    /* Past UUID's own __setattr__, which forbids it to everyone. */
    if (!number || Py_TYPE(uuid_int)->tp_descr_set(uuid_int, made, number) ||
        Py_TYPE(uuid_safe)->tp_descr_set(uuid_safe, made, safe_unknown)) {
        Py_XDECREF(number);
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(number);
    return made;
}

static PyObject *read_struct(Reader *r, const Node *node);

static PyObject *make_number(Reader *r, long long number) {
    if (number < -5 || number > 256) r->left -= NUMBER_COST;
    return PyLong_FromLongLong(number);
}

static PyObject *read_fixed(Reader *r, int kind) {
    const uint8_t *p = r->at;
    if (r->end - p < SIZES[kind]) return odd();
    r->at += SIZES[kind];
    switch (kind) {
    case BOOL:
        if (*p > 1) return odd();
        return PyBool_FromLong(*p);
    case INT8: return make_number(r, (int8_t)*p);
    case INT16: return make_number(r, (int16_t)(p[0] << 8 | p[1]));
    case UINT16: return make_number(r, p[0] << 8 | p[1]);
    case INT32: return make_number(r, (int32_t)load32(p));
    case UINT32: return make_number(r, load32(p));
    case INT64: return make_number(r, (int64_t)load64(p));
    case UUID: r->left -= UUID_COST; return make_uuid(p);
    }
    r->left -= FLOAT_COST;
    uint64_t bits = load64(p);
    double number;
    memcpy(&number, &bits, 8);
    /* A NaN may carry bits that no float keeps. */
    return number != number ? odd() : PyFloat_FromDouble(number);
}

static PyObject *read_one(Reader *r, const Node *node, int nullable) {
    if (node->kind < STRING) return read_fixed(r, node->kind);
    if (node->kind == STRUCT) {
        if (nullable) {
            if (r->at >= r->end) return odd();
            uint8_t present = *r->at++;
            /* Inside a tag null is an unsigned varint 0, elsewhere an int8 of -1. */
            if (present == (node->tag >= 0 ? 0 : 0xFF)) Py_RETURN_NONE;
            if (present != 1) return odd();
        }
        return read_struct(r, node);
    }
    int64_t size = length(r, node->compact, node->kind == STRING ? 2 : 4);
    if (size == -1 && nullable) Py_RETURN_NONE;
    if (size < 0 || size > r->end - r->at) return odd();
    const char *start = (const char *)r->at;
    r->at += size;
    if (size) r->left -= size + (node->kind == BYTES ? BYTES_COST : STRING_COST);
    if (r->left < 0) return odd();
    if (node->kind == BYTES) return PyBytes_FromStringAndSize(start, size);
    if (size > LONGEST_STRING) return odd();
    PyObject *text = PyUnicode_DecodeUTF8(start, size, NULL);
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return odd();
    if (text && !PyUnicode_IS_ASCII(text)) r->left -= size * (WIDE_LETTER_COST - 1);
    return text;
}

static PyObject *read_field(Reader *r, const Node *node) {
    if (!node->array) return read_one(r, node, node->nullable);
    int64_t count = length(r, node->compact, 4);
    if (count == -1 && node->nullable) Py_RETURN_NONE;
    if (count < 0 || count > (r->end - r->at) / node->least) return odd();
    r->left -= LIST_COST + count * SLOT_COST;
    if (r->left < count * node->cost) return odd();
    PyObject *list = PyList_New(count);
    for (int64_t index = 0; list && index < count; index++) {
        PyObject *item = r->left < 0 ? odd() : read_one(r, node, 0);
        if (!item) Py_CLEAR(list);
        else PyList_SET_ITEM(list, index, item);
    }
    return list;
}

static PyObject *make_default(const Node *node) {
    if (node->plain_default) return Py_NewRef(node->plain_default);
    if (node->array) return PyList_New(0);
    PyObject *made = PyDict_New();
    for (int index = 0; made && index < node->count; index++) {
        PyObject *value = make_default(&node->children[index]);
        if (!value || PyDict_SetItem(made, node->children[index].name, value)) Py_CLEAR(made);
        Py_XDECREF(value);
    }
    return made;
}

/* Known tags, ascending, each with its true size and not at its default. */
static int read_tags(Reader *r, const Node *node, PyObject *value) {
    if (r->at >= r->end || *r->at > 127) return odd(), -1;
    int left = *r->at++;
    int64_t last = -1;
    uint64_t seen = 0;
    while (left--) {
        int64_t tag = varint(r), size = tag < 0 ? -1 : varint(r);
        const uint8_t *start = r->at;
        if (tag <= last || size < 0 || size > r->end - r->at) return odd(), -1;
        last = tag;
        const Node *child = node->children;
        while (child < node->children + node->count && child->tag != tag) child++;
        if (child == node->children + node->count) return odd(), -1;
        PyObject *content = read_field(r, child), *usual = content ? make_default(child) : NULL;
        int same = usual ? PyObject_RichCompareBool(content, usual, Py_EQ) : -1;
        if (same == 0 && r->at - start == size) same = PyDict_SetItem(value, child->name, content) ? -1 : 0;
        else if (same >= 0) same = (odd(), -1);
        Py_XDECREF(content);
        Py_XDECREF(usual);
        if (same) return -1;
        seen |= (uint64_t)1 << (child - node->children);
    }
    for (int index = 0; index < node->count; index++) {
        const Node *child = &node->children[index];
        if (child->tag < 0 || seen >> index & 1) continue;
        PyObject *usual = make_default(child);
        int failed = !usual || PyDict_SetItem(value, child->name, usual);
        Py_XDECREF(usual);
        if (failed) return -1;
    }
    return 0;
}

static PyObject *read_struct(Reader *r, const Node *node) {
    r->left -= node->cost;
    if (r->left < 0) return odd();
    PyObject *value = PyDict_Copy(node->blank);
    if (!value) return NULL;
    for (int index = 0; index < node->count; index++) {
        const Node *child = &node->children[index];
        if (child->tag >= 0) continue;
        PyObject *content = read_field(r, child);
        int failed = !content || PyDict_SetItem(value, child->name, content);
        Py_XDECREF(content);
        if (failed) goto fail;
    }
    if (r->flexible) {
        if (node->tagged) {
            if (read_tags(r, node, value)) goto fail;
        } else if (r->at >= r->end || *r->at++) {
            odd();
            goto fail;
        }
    }
    return value;
fail:
    Py_DECREF(value);
    return NULL;
}

static void free_node(Node *node) {
    Py_CLEAR(node->name);
    Py_CLEAR(node->plain_default);
    Py_CLEAR(node->blank);
    for (int index = 0; index < node->count; index++) free_node(&node->children[index]);
    PyMem_Free(node->children);
    node->children = NULL;
    node->count = 0;
}

/* (name, kind, array, nullable, compact, tag or -1, default or NotImplemented, least bytes, cost, children) */
static int parse_nodes(Node *parent, PyObject *fields) {
    Py_ssize_t count = PyTuple_Size(fields);
    if (count < 0) return -1;
    if (count > 64) return PyErr_SetString(PyExc_ValueError, "a struct of more than 64 fields"), -1;
    parent->children = PyMem_Calloc(count ? count : 1, sizeof(Node));
    if (!parent->children) return PyErr_NoMemory(), -1;
    parent->blank = PyDict_New();
    if (!parent->blank) return -1;
    for (Py_ssize_t index = 0; index < count; index++) {
        Node *node = &parent->children[index];
        PyObject *name, *usual, *children;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, index), "UipppiOnnO!", &name, &node->kind, &node->array,
                              &node->nullable, &node->compact, &node->tag, &usual, &node->least, &node->cost,
                              &PyTuple_Type, &children))
            return -1;
        if (node->kind < BOOL || node->kind > STRUCT || node->least < 1 || node->cost < 0)
            return PyErr_SetString(PyExc_ValueError, "no such field"), -1;
        parent->count = (int)index + 1;
        node->name = Py_NewRef(name);
        PyUnicode_InternInPlace(&node->name);
        if (usual != Py_NotImplemented) node->plain_default = Py_NewRef(usual);
        if (node->tag >= 0) parent->tagged = 1;
        if (PyDict_SetItem(parent->blank, node->name, Py_None) || parse_nodes(node, children)) return -1;
    }
    return 0;
}

static int decoder_init(Decoder *self, PyObject *args, PyObject *Py_UNUSED(keywords)) {
    PyObject *fields, *constants, *result;
    if (!PyArg_ParseTuple(args, "O!pO!O!(LLLn)", &PyTuple_Type, &fields, &self->flexible, &PyType_Type, &result,
                          &PyTuple_Type, &constants, &self->most, &self->always, &self->ratio,
                          &self->root.cost))
        return -1;
    if (self->result || PyTuple_GET_SIZE(constants) != RESULT_SLOTS)
        return PyErr_SetString(PyExc_ValueError, "six slots wanted, once"), -1;
    self->result = (PyTypeObject *)Py_NewRef(result);
    for (int index = 0; index < RESULT_SLOTS; index++) {
        PyObject *slot, *content;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(constants, index), "O!O", &PyMemberDescr_Type, &slot, &content)) return -1;
        if (((PyDescrObject *)slot)->d_type != self->result)
            return PyErr_SetString(PyExc_ValueError, "a slot of another type"), -1;
        self->offsets[index] = ((PyMemberDescrObject *)slot)->d_member->offset;
        self->contents[index] = Py_NewRef(content);
    }
    return parse_nodes(&self->root, fields);
}

static void decoder_dealloc(Decoder *self) {
    free_node(&self->root);
    Py_XDECREF(self->result);
    for (int index = 0; index < RESULT_SLOTS; index++) Py_XDECREF(self->contents[index]);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Past the frozen dataclass's own __init__, which takes longer than a small message. */
static PyObject *make_result(const Decoder *self, PyObject *value) {
    PyObject *made = self->result->tp_alloc(self->result, 0);
    for (int index = 0; made && index < RESULT_SLOTS; index++) {
        PyObject *content = self->contents[index];
        *(PyObject **)((char *)made + self->offsets[index]) = Py_NewRef(content == Py_NotImplemented ? value : content);
    }
    return made;
}

/* decoder(data, position) -> Decoded of everything from position to the end, or None. */
static PyObject *decoder_decode(Decoder *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyBytes_Check(args[0]))
        return PyErr_SetString(PyExc_TypeError, "bytes and a position wanted"), NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]), position = PyLong_AsSsize_t(args[1]);
    if (position == -1 && PyErr_Occurred()) return NULL;
    if (position < 0 || position > size) Py_RETURN_NONE;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    long long left = self->always + self->ratio * (size - position);
    Reader reader = {start + position, start + size, self->flexible, left < self->most ? left : self->most};
    PyObject *value = read_struct(&reader, &self->root);
    if (value && reader.at == reader.end && reader.left >= 0) {
        PyObject *made = make_result(self, value);
        Py_DECREF(value);
        return made;
    }
    if (value) Py_DECREF(value);
    else if (PyErr_ExceptionMatches(surprise)) PyErr_Clear();
    else return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"decode", (PyCFunction)(void (*)(void))decoder_decode, METH_FASTCALL, "bytes and a position to a result or None"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject decoder_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkascope.codec._native.Decoder",
    .tp_basicsize = sizeof(Decoder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Decoder(fields, flexible, result type, constants, bounds)",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)decoder_init,
    .tp_dealloc = (destructor)decoder_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "The decoder in C.", -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *uuid = PyImport_ImportModule("uuid");
    if (!uuid || PyType_Ready(&decoder_type)) return NULL;
    PyObject *safe = PyObject_GetAttrString(uuid, "SafeUUID");
    uuid_type = PyObject_GetAttrString(uuid, "UUID");
    uuid_int = uuid_type ? PyObject_GetAttrString(uuid_type, "int") : NULL;
    uuid_safe = uuid_type ? PyObject_GetAttrString(uuid_type, "is_safe") : NULL;
    safe_unknown = safe ? PyObject_GetAttrString(safe, "unknown") : NULL;
    Py_XDECREF(safe);
    Py_DECREF(uuid);
    surprise = PyErr_NewException("kafkascope.codec._native.Surprise", NULL, NULL);
    PyObject *made = surprise && uuid_int && uuid_safe && safe_unknown ? PyModule_Create(&module) : NULL;
    if (made && PyModule_AddObjectRef(made, "Decoder", (PyObject *)&decoder_type)) Py_CLEAR(made);
    return made;
}
