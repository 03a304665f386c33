/* Decodes the records of one batch of magic 2, in the one form Kafka writes, to objects or to columns; built where a C
 * compiler is available.
 *
 * Anything else gives None, and the Python decoders then read it. Every read is preceded by a comparison with the end of
 * its record; a record takes at least seven bytes, so their count is compared before anything is allocated. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>

/* As in record_walk.py. */
#define LEAST_RECORD_BYTES 7
#define LEAST_HEADER_BYTES 2
enum slot { OFFSET, TIMESTAMP, KEY, VALUE, HEADERS, ATTRIBUTES, SLOTS };

typedef struct {
    PyObject_HEAD
    PyTypeObject *record;
    Py_ssize_t offsets[SLOTS]; /* where the slots of a record lie */
    PyObject *no_headers;
} Reader;

typedef struct {
    const uint8_t *at, *end; /* of the record */
    long long items;         /* headers that may still be created */
} Bytes;

/* A varint in its shortest form (KIP-98), of at most `most` bytes; 0 if it isn't one. */
static int varint(Bytes *bytes, int most, uint64_t *value) {
    *value = 0;
    for (int index = 0; index < most; index++) {
        if (bytes->at >= bytes->end) return 0;
        uint8_t byte = *bytes->at++;
        *value |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) return !(index && !byte);
    }
    return 0;
}

static int64_t signed_of(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

/* 0 if it isn't an int32 in its shortest form. */
static int varint32(Bytes *bytes, int64_t *value) {
    uint64_t raw;
    if (!varint(bytes, 5, &raw) || raw > UINT32_MAX) return 0;
    *value = signed_of(raw);
    return 1;
}

/* Bytes or None; NULL without an exception if it is neither. */
static PyObject *read_bytes(Bytes *bytes) {
    int64_t size;
    if (!varint32(bytes, &size) || size < -1) return NULL;
    if (size == -1) Py_RETURN_NONE;
    if (size > bytes->end - bytes->at) return NULL;
    PyObject *made = PyBytes_FromStringAndSize((const char *)bytes->at, size);
    bytes->at += size;
    return made;
}

static PyObject *read_header(Bytes *bytes) {
    int64_t size;
    if (!varint32(bytes, &size) || size < 0 || size > bytes->end - bytes->at) return NULL;
    PyObject *key = PyUnicode_DecodeUTF8((const char *)bytes->at, size, NULL);
    if (!key) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) PyErr_Clear();
        return NULL;
    }
    bytes->at += size;
    PyObject *value = read_bytes(bytes), *pair = value ? PyTuple_Pack(2, key, value) : NULL;
    Py_DECREF(key);
    Py_XDECREF(value);
    return pair;
}

static PyObject *read_headers(const Reader *self, Bytes *bytes) {
    int64_t count;
    if (!varint32(bytes, &count) || count < 0 || count > (bytes->end - bytes->at) / LEAST_HEADER_BYTES) return NULL;
    if (!count) return Py_NewRef(self->no_headers);
    if (count > bytes->items) return NULL;
    bytes->items -= count;
    PyObject *headers = PyTuple_New(count);
    for (int64_t index = 0; headers && index < count; index++) {
        PyObject *pair = read_header(bytes);
        if (!pair) Py_CLEAR(headers);
        else PyTuple_SET_ITEM(headers, index, pair);
    }
    return headers;
}

/* Adding a delta of 62 bits or less to it stays within int64. */
static int is_safe(long long base) { return -(1LL << 62) < base && base < 1LL << 62; }

/* Past the frozen dataclass's own __init__, which takes longer than to read a record. */
static PyObject *read_record(const Reader *self, Bytes *bytes, long long base_offset, long long base_timestamp) {
    uint64_t timestamp;
    int64_t offset;
    if (bytes->at >= bytes->end || *bytes->at > INT8_MAX) return NULL;
    uint8_t attributes = *bytes->at++;
    if (!varint(bytes, 9, &timestamp) || !varint32(bytes, &offset)) return NULL;
    PyObject *made = self->record->tp_alloc(self->record, 0);
    if (!made) return NULL;
#define SLOT(slot) (*(PyObject **)((char *)made + self->offsets[slot]))
    int whole = (SLOT(OFFSET) = PyLong_FromLongLong(base_offset + offset)) != NULL &&
                (SLOT(TIMESTAMP) = PyLong_FromLongLong(base_timestamp + signed_of(timestamp))) != NULL &&
                (SLOT(KEY) = read_bytes(bytes)) != NULL && (SLOT(VALUE) = read_bytes(bytes)) != NULL &&
                (SLOT(HEADERS) = read_headers(self, bytes)) != NULL &&
                (SLOT(ATTRIBUTES) = PyLong_FromLong(attributes)) != NULL && bytes->at == bytes->end;
    if (!whole) Py_CLEAR(made);
    /* It holds numbers, bytes and strings: the garbage collector has nothing to find in it. */
    else PyObject_GC_UnTrack(made);
    return made;
}

/* read(data, start, end, count, base offset, base timestamp, most headers) -> (records, headers), or None. */
static PyObject *reader_read(Reader *self, PyObject *args) {
    PyObject *data;
    Py_ssize_t start, end, count;
    long long base_offset, base_timestamp, items;
    if (!PyArg_ParseTuple(args, "SnnnLLL", &data, &start, &end, &count, &base_offset, &base_timestamp, &items)) return NULL;
    if (start < 0 || end < start || end > PyBytes_GET_SIZE(data) || count < 0 || items < 0 ||
        count > (end - start) / LEAST_RECORD_BYTES || !is_safe(base_offset) || !is_safe(base_timestamp))
        Py_RETURN_NONE;
    const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(data);
    Bytes bytes = {first + start, first + end, items};
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t index = 0; records && index < count; index++) {
        int64_t size;
        PyObject *record = NULL;
        bytes.end = first + end;
        if (varint32(&bytes, &size) && size >= 0 && size <= bytes.end - bytes.at) {
            bytes.end = bytes.at + size;
            record = read_record(self, &bytes, base_offset, base_timestamp);
        }
        if (!record) Py_CLEAR(records);
        else PyTuple_SET_ITEM(records, index, record);
    }
    if (records && bytes.at != first + end) Py_CLEAR(records);
    if (records) return Py_BuildValue("NL", records, items - bytes.items);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static int reader_init(Reader *self, PyObject *args, PyObject *Py_UNUSED(keywords)) {
    PyObject *record, *members;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &record, &PyTuple_Type, &members)) return -1;
    if (self->record || PyTuple_GET_SIZE(members) != SLOTS || !PyType_IS_GC((PyTypeObject *)record))
        return PyErr_SetString(PyExc_ValueError, "six slots of a type in Python wanted, once"), -1;
    for (int index = 0; index < SLOTS; index++) {
        PyObject *member = PyTuple_GET_ITEM(members, index);
        if (!PyObject_TypeCheck(member, &PyMemberDescr_Type) || ((PyDescrObject *)member)->d_type != (PyTypeObject *)record)
            return PyErr_SetString(PyExc_ValueError, "a slot of another type"), -1;
        self->offsets[index] = ((PyMemberDescrObject *)member)->d_member->offset;
    }
    self->no_headers = PyTuple_New(0);
    self->record = (PyTypeObject *)Py_NewRef(record);
    return self->no_headers ? 0 : -1;
}

static void reader_dealloc(Reader *self) {
    Py_XDECREF(self->record);
    Py_XDECREF(self->no_headers);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* The bytes of one buffer of an Arrow array, which grows. */
typedef struct {
    char *data;
    Py_ssize_t size, room;
} Buffer;

/* Presence has a byte for each item here, and a bit in Arrow's form. ENDS are those of each item in the bytes before it. */
enum buffer {
    OFFSETS, TIMES, KEY_PRESENT, KEY_ENDS, KEYS, VALUE_PRESENT, VALUE_ENDS, VALUES,
    HEADER_ENDS, NAME_ENDS, NAMES, CONTENT_PRESENT, CONTENT_ENDS, CONTENTS, BUFFERS
};

/* Of a timestamp: beyond it, microseconds have no room in 64 bits. */
#define MOST_MS (INT64_MAX / 1000)

typedef struct {
    PyObject_HEAD
    Buffer buffers[BUFFERS];
    Py_ssize_t rows, headers;
} Columns;

static int put(Buffer *buffer, const void *bytes, Py_ssize_t size) {
    if (size > buffer->room - buffer->size) {
        Py_ssize_t room = buffer->room ? buffer->room : 4096;
        while (room - buffer->size < size) room *= 2;
        char *data = PyMem_Realloc(buffer->data, room);
        if (!data) return PyErr_NoMemory(), 0;
        buffer->data = data, buffer->room = room;
    }
    if (size) memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    return 1;
}

/* The end of the items that `bytes` has: Arrow counts them in 31 bits. */
static int put_end(Buffer *ends, Py_ssize_t size) {
    int32_t end = (int32_t)size;
    return size <= INT32_MAX && put(ends, &end, sizeof end);
}

/* A length and its bytes, or null. */
static int put_bytes(Columns *self, Bytes *bytes, int present, int chosen) {
    int64_t size;
    if (!varint32(bytes, &size) || size < -1 || size > bytes->end - bytes->at) return 0;
    char flag = size >= 0;
    const uint8_t *first = bytes->at;
    if (size > 0) bytes->at += size;
    if (!chosen) return 1;
    Buffer *buffer = self->buffers + present;
    return put(buffer, &flag, 1) && put(buffer + 2, first, size > 0 ? size : 0) && put_end(buffer + 1, buffer[2].size);
}

/* In ASCII, which is UTF-8 without a further look. */
static int put_name(Columns *self, Bytes *bytes, int chosen) {
    int64_t size;
    if (!varint32(bytes, &size) || size < 0 || size > bytes->end - bytes->at) return 0;
    const uint8_t *first = bytes->at;
    for (int64_t index = 0; index < size; index++)
        if (first[index] > INT8_MAX) return 0;
    bytes->at += size;
    Buffer *names = self->buffers + NAMES;
    return !chosen || (put(names, first, size) && put_end(self->buffers + NAME_ENDS, names->size));
}

static int put_headers(Columns *self, Bytes *bytes, int chosen) {
    int64_t count;
    if (!varint32(bytes, &count) || count < 0 || count > (bytes->end - bytes->at) / LEAST_HEADER_BYTES ||
        count > bytes->items)
        return 0;
    bytes->items -= count;
    for (int64_t index = 0; index < count; index++)
        if (!put_name(self, bytes, chosen) || !put_bytes(self, bytes, CONTENT_PRESENT, chosen)) return 0;
    if (!chosen) return 1;
    self->headers += count;
    return put_end(self->buffers + HEADER_ENDS, self->headers);
}

/* What a batch says of all its records, and which of them are wanted: those between these offsets. */
typedef struct {
    long long base_offset, base_timestamp, stamp, first, last;
    int stamped;
} Batch;

static int put_record(Columns *self, Bytes *bytes, const Batch *batch) {
    uint64_t delta;
    int64_t offset;
    if (bytes->at >= bytes->end || *bytes->at++ > INT8_MAX) return 0;
    if (!varint(bytes, 9, &delta) || !varint32(bytes, &offset)) return 0;
    offset += batch->base_offset;
    int64_t time = batch->stamped ? batch->stamp : batch->base_timestamp + signed_of(delta);
    int chosen = batch->first <= offset && offset <= batch->last;
    if (time < -MOST_MS || time > MOST_MS) return 0;
    time *= 1000;
    if (!put_bytes(self, bytes, KEY_PRESENT, chosen) || !put_bytes(self, bytes, VALUE_PRESENT, chosen) ||
        !put_headers(self, bytes, chosen) || bytes->at != bytes->end)
        return 0;
    self->rows += chosen;
    return !chosen || (put(self->buffers + OFFSETS, &offset, sizeof offset) && put(self->buffers + TIMES, &time, sizeof time));
}

/* add(data, start, end, count, base offset, base timestamp, stamp or None, first, last, most headers): how many headers
 * its records have, or None, and then nothing is added. */
static PyObject *columns_add(Columns *self, PyObject *args) {
    PyObject *data, *stamp;
    Py_ssize_t start, end, count;
    Batch batch = {0};
    long long items;
    if (!PyArg_ParseTuple(args, "SnnnLLOLLL", &data, &start, &end, &count, &batch.base_offset, &batch.base_timestamp, &stamp,
                          &batch.first, &batch.last, &items))
        return NULL;
    batch.stamped = stamp != Py_None;
    if (batch.stamped && (batch.stamp = PyLong_AsLongLong(stamp)) == -1 && PyErr_Occurred()) return NULL;
    if (start < 0 || end < start || end > PyBytes_GET_SIZE(data) || count < 0 || items < 0 ||
        count > (end - start) / LEAST_RECORD_BYTES || !is_safe(batch.base_offset) || !is_safe(batch.base_timestamp))
        Py_RETURN_NONE;
    Py_ssize_t sizes[BUFFERS], rows = self->rows, headers = self->headers;
    for (int index = 0; index < BUFFERS; index++) sizes[index] = self->buffers[index].size;
    const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(data);
    Bytes bytes = {first + start, first + end, items};
    int whole = 1;
    for (Py_ssize_t index = 0; whole && index < count; index++) {
        int64_t size;
        bytes.end = first + end;
        whole = varint32(&bytes, &size) && size >= 0 && size <= bytes.end - bytes.at;
        if (whole) bytes.end = bytes.at + size;
        whole = whole && put_record(self, &bytes, &batch);
    }
    if (whole && bytes.at == first + end) return PyLong_FromLongLong(items - bytes.items);
    for (int index = 0; index < BUFFERS; index++) self->buffers[index].size = sizes[index];
    self->rows = rows, self->headers = headers;
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* A bit for each byte. */
static PyObject *bits(const Buffer *buffer) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, (buffer->size + 7) / 8);
    if (!made) return NULL;
    char *data = PyBytes_AS_STRING(made);
    memset(data, 0, (buffer->size + 7) / 8);
    for (Py_ssize_t index = 0; index < buffer->size; index++) data[index / 8] |= (char)(buffer->data[index] << index % 8);
    return made;
}

static int is_ends(int index) {
    return index == KEY_ENDS || index == VALUE_ENDS || index == HEADER_ENDS || index == NAME_ENDS || index == CONTENT_ENDS;
}

/* Empty, but for the first end of each. */
static int columns_clear(Columns *self) {
    self->rows = self->headers = 0;
    for (int index = 0; index < BUFFERS; index++) {
        self->buffers[index].size = 0;
        if (is_ends(index) && !put_end(self->buffers + index, 0)) return 0;
    }
    return 1;
}

/* take() -> (rows, headers, buffers), and it's empty again. */
static PyObject *columns_take(Columns *self, PyObject *Py_UNUSED(nothing)) {
    PyObject *buffers = PyTuple_New(BUFFERS);
    for (int index = 0; buffers && index < BUFFERS; index++) {
        Buffer *buffer = self->buffers + index;
        int present = index == KEY_PRESENT || index == VALUE_PRESENT || index == CONTENT_PRESENT;
        PyObject *made = present ? bits(buffer) : PyBytes_FromStringAndSize(buffer->data, buffer->size);
        if (!made) Py_CLEAR(buffers);
        else PyTuple_SET_ITEM(buffers, index, made);
    }
    if (!buffers) return NULL;
    PyObject *result = Py_BuildValue("nnN", self->rows, self->headers, buffers);
    if (result && !columns_clear(self)) Py_CLEAR(result);
    return result;
}

static int columns_init(Columns *self, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(keywords)) {
    return columns_clear(self) ? 0 : -1;
}

static void columns_dealloc(Columns *self) {
    for (int index = 0; index < BUFFERS; index++) PyMem_Free(self->buffers[index].data);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef columns_methods[] = {
    {"add", (PyCFunction)columns_add, METH_VARARGS, "the records of a batch between two offsets; how many headers, or None"},
    {"take", (PyCFunction)columns_take, METH_NOARGS, "rows, headers, and the buffers of Arrow arrays"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject columns_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkascope.codec._native_records.Columns",
    .tp_basicsize = sizeof(Columns),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Columns()",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)columns_init,
    .tp_dealloc = (destructor)columns_dealloc,
    .tp_methods = columns_methods,
};

static PyMethodDef methods[] = {
    {"read", (PyCFunction)reader_read, METH_VARARGS, "the records of a batch and how many headers they have, or None"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject reader_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkascope.codec._native_records.Reader",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Reader(record type, its slots)",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)reader_init,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native_records", "The decoder of records in C.", -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native_records(void) {
    if (PyType_Ready(&reader_type) || PyType_Ready(&columns_type)) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddObjectRef(made, "Reader", (PyObject *)&reader_type) ||
                 PyModule_AddObjectRef(made, "Columns", (PyObject *)&columns_type)))
        Py_CLEAR(made);
    return made;
}
