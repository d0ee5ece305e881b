# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers of filch: the little of C that they use, and no more.

What the reader does not understand is an error, so that no declaration is left out in silence.
"""
import pathlib
import re

SCALARS = {  # bytes
    "void": 0, "char": 1, "bool": 1, "int": 4, "int32_t": 4, "uint32_t": 4,
    "int64_t": 8, "uint64_t": 8, "size_t": 8, "double": 8,
}


class Type:
    """A type: name, levels of pointers, and whether what is pointed to is const."""

    def __init__(self, text):
        words = re.findall(r"[A-Za-z_0-9]+|\*", text)
        self.pointers = words.count("*")
        names = [word for word in words if word not in ("*", "const", "struct")]
        if len(names) != 1:
            raise SyntaxError(f"not a type: '{text}'")
        self.name = names[0]
        before = words[:words.index(self.name)]
        after = words[words.index(self.name) + 1:]
        self.is_const = "const" in before or after[:1] == ["const"]


class Field:
    """A member of a structure, or a parameter."""

    def __init__(self, text):
        match = re.fullmatch(r"\s*(.*?[\s*])([A-Za-z_0-9]+)\s*(?:\[(\d+)\])?\s*", text, re.S)
        if not match:
            raise SyntaxError(f"not a declaration: '{text}'")
        self.type = Type(match[1])
        self.name = match[2]
        self.length = int(match[3]) if match[3] else 0  # 0: no array
        self.initial = None  # what the structure's initializer has, if not 0


def _fields(text, separator):
    return [Field(each) for each in text.split(separator) if each.strip() not in ("", "void")]


class Function:
    """A function, or the type of one."""

    def __init__(self, result, name, parameters):
        self.result = Type(result)
        self.name = name
        self.parameters = _fields(parameters, ",")


class Headers:
    """Declarations of the headers, in an order in which each is declared before its use."""

    def __init__(self, folder):
        self.constants = {}  # name: value, without macros of enumerations
        self.enums = {}      # type: {name: value}
        self.aliases = {}    # type: scalar
        self.opaque = []
        self.structs = {}    # type: [Field]
        self.callbacks = {}  # type: Function
        self.functions = {}  # name: Function
        self.pointers = []   # types of functions written inside a structure
        self._read = set()
        self._folder = pathlib.Path(folder)
        for path in sorted(self._folder.glob("*.h")):
            self._read_file(path)
        self.opaque = [name for name in self.opaque if name not in self.structs]

    def _read_file(self, path):
        if path.name in self._read:
            return
        self._read.add(path.name)
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
        for included in re.findall(r'^#include "filch/(\w+\.h)"', text, re.M):
            self._read_file(self._folder / included)
        text = text.replace("\\\n", " ")
        macros = re.findall(r"^#define[ \t]+(\w+)(\(\w+(?:, \w+)*\))?[ \t]*(.*)$", text, re.M)
        text = re.sub(r"^#.*$", "", text, flags=re.M).replace('extern "C" {', "")
        self._read_table(macros)
        self._read_macros(macros)
        try:
            self._read_declarations(text, path)
        except SyntaxError as error:
            raise SyntaxError(f"{path.name}: {error}") from None
        self._read_initializers(macros)

    def _read_table(self, macros):
        for name, _, text in macros:
            if name == "FILCH_STATUS_TABLE":
                rows = re.findall(r"X\((\w+), (\d+), \"", text)
                self.enums["filch_status"] = {"FILCH_" + row: int(value) for row, value in rows}

    def _read_macros(self, macros):
        for name, parameters, text in macros:
            value = text.strip()
            if parameters or not name.startswith("FILCH_") or not value:
                continue
            value = value.replace("UINT64_MAX", str(2 ** 64 - 1)).replace("UINT32_MAX",
                                                                          str(2 ** 32 - 1))
            if re.fullmatch(r"[\d\s()x+a-f-]+", value):
                self.constants[name] = eval(value)  # numbers, signs and brackets alone

    def _read_declarations(self, text, path):
        rest = text
        for pattern, take in (
                (r"typedef enum (\w+) \{(.*?)\} (\w+);", self._enum),
                (r"typedef struct (\w+) \{(.*?)\n\} (\w+);", self._struct),
                (r"typedef struct (\w+) (\w+);", self._opaque),
                (r"typedef (\w+) (\w+);", self._alias),
                (r"typedef ([\w *]+?)\(\*(\w+)\)\((.*?)\);", self._callback),
                (r"FILCH_API ([\w *]+?)(\w+)\((.*?)\);", self._function),
                (r"(struct) (\w+);", lambda *_: None)):
            for match in re.finditer(pattern, rest, re.S):
                take(*match.groups())
            rest = re.sub(pattern, "", rest, flags=re.S)
        if rest.strip(" \n}"):
            raise SyntaxError(f"not understood: '{rest.strip()[:60]}'")

    def _enum(self, name, body, _):
        if name == "filch_status":
            return
        self.enums[name] = {}
        for row in body.split(","):
            if row.strip():
                constant, value = row.split("=")
                self.enums[name][constant.strip()] = int(value)

    def _struct(self, name, body, _):
        fields = []
        for row in body.split(";"):
            pointer = re.fullmatch(r"\s*([\w *]+?)\(\*(\w+)\)\((.*)\)\s*", row, re.S)
            if pointer:
                kind = f"{name}_{pointer[2]}_fn"
                self.callbacks[kind] = Function(pointer[1], kind, pointer[3])
                self.pointers.append(kind)
                fields.append(Field(f"{kind} {pointer[2]}"))
            elif row.strip():
                fields.append(Field(row))
        self.structs[name] = fields

    def _opaque(self, name, _):
        self.opaque.append(name)

    def _alias(self, scalar, name):
        self.aliases[name] = scalar

    def _callback(self, result, name, parameters):
        self.callbacks[name] = Function(result, name, parameters)

    def _function(self, result, name, parameters):
        self.functions[name] = Function(result, name, parameters)

    def _read_initializers(self, macros):
        for name, parameters, text in macros:
            struct = name[:-len("_INIT")].lower()
            if parameters or not name.endswith("_INIT") or struct not in self.structs:
                continue
            # Values of members, in order; those in braces are 0.
            flat = re.sub(r"\{.*\}", "0", text.strip()[1:-1])
            values = [value.strip() for value in flat.split(",")]
            for field, value in zip(self.structs[struct], values):
                if value.startswith("FILCH_") and self.value(value) or \
                        re.fullmatch(r"[1-9]\d*", value):
                    field.initial = value
                elif not re.fullmatch(r'sizeof.*|NULL|false|0|0\.0|\(uint64_t\)0|""|FILCH_\w+',
                                      value):
                    raise SyntaxError(f"{name}: not understood: '{value}'")

    def value(self, constant):
        """Value of a constant; 0 where it initializes a structure."""
        for names in self.enums.values():
            if constant in names:
                return names[constant]
        return self.constants.get(constant, 0)

    def layout(self, name):
        """Bytes and alignment of a type, and the offsets of a structure's members (64 bits)."""
        if name in self.structs:
            at, align, offsets = 0, 1, {}
            for field in self.structs[name]:
                size, own = (8, 8) if field.type.pointers else self.layout(field.type.name)[:2]
                at = (at + own - 1) // own * own
                offsets[field.name] = at
                at += size * (field.length or 1)
                align = max(align, own)
            return (at + align - 1) // align * align, align, offsets
        if name in self.enums:
            return 4, 4, {}
        size = 8 if name in self.callbacks else SCALARS[self.aliases.get(name, name)]
        return size, size, {}
