# SPDX-License-Identifier: Apache-2.0
"""The declarations in Python, for ctypes."""

SCALARS = {
    "char": "_c.c_char", "bool": "_c.c_bool", "int": "_c.c_int", "int32_t": "_c.c_int32",
    "uint32_t": "_c.c_uint32", "int64_t": "_c.c_int64", "uint64_t": "_c.c_uint64",
    "size_t": "_c.c_size_t", "double": "_c.c_double",
}

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The C interface of filch, for ctypes: the names and the meanings of include/filch/*.h.

Written by bindings/declare.py; not to be edited. Handles and pointers to memory are c_void_p. A
structure that begins with its size is made with the size and the defaults of its initializer.
"""
import ctypes as _c
'''


def _type(read, of):
    """A type of a member, of a parameter or of a result."""
    name = read.aliases.get(of.name, of.name)
    if of.pointers == 1 and name == "char":
        return "_c.c_char_p"
    if of.pointers == 0:
        if name in read.enums:
            return "_c.c_int"
        return SCALARS.get(name, name)
    return "_c.c_void_p"


def _argument(read, of):
    """Pointers to structures and scalars are typed; handles, memory and arrays are addresses."""
    if of.pointers == 1 and of.name in read.structs:
        return f"_c.POINTER({of.name})"
    if of.pointers == 2 and of.name in read.opaque:
        return "_c.POINTER(_c.c_void_p)"
    return _type(read, of)


def _struct(read, name, fields):
    rows = ["", "", f"class {name}(_c.Structure):"]
    rows.append("    _fields_ = [")
    for field in fields:
        kind = _type(read, field.type)
        if field.length:
            kind = f"{kind} * {field.length}"
        rows.append(f'        ("{field.name}", {kind}),')
    rows.append("    ]")
    initial = [(field.name, field.initial) for field in fields if field.initial]
    if fields[0].name == "size":
        rows += ["", "    def __init__(self, **members):",
                 f"        super().__init__(size=_c.sizeof({name}))"]
        rows += [f"        self.{member} = {value}" for member, value in initial]
        rows += ["        for name, value in members.items():",
                 "            if not hasattr(self, name):",
                 f'                raise TypeError("{name} has no member " + name)',
                 "            setattr(self, name, value)"]
    return rows


def write(read):
    """Returns the module's text."""
    rows = [HEAD]
    for name, names in read.enums.items():
        rows.append(f"# {name}")
        rows += [f"{constant} = {value}" for constant, value in names.items()]
        rows.append("")
    rows += [f"{constant} = {value}" for constant, value in read.constants.items()]
    rows += ["", "# Types of functions. A null pointer to a function is the type called without "
             "an argument."]
    by_value = [name for name, callback in read.callbacks.items()]
    for name in by_value:
        callback = read.callbacks[name]
        kinds = ["None" if callback.result.name == "void" and not callback.result.pointers
                 else _type(read, callback.result)]
        # Arguments of functions called by filch are addresses: a structure is made on demand.
        kinds += [_type(read, each.type) for each in callback.parameters]
        rows.append(f"{name} = _c.CFUNCTYPE(")
        rows.append("    " + ", ".join(kinds) + ")")
    for name, fields in read.structs.items():
        rows += _struct(read, name, fields)
    rows += ["", "", "# Results and parameters of the functions.", "FUNCTIONS = {"]
    for name, function in read.functions.items():
        result = _type(read, function.result)
        if function.result.pointers and function.result.name in read.structs:
            result = f"_c.POINTER({function.result.name})"
        rows.append(f'    "{name}": ({result}, [')
        rows += [f"        {_argument(read, each.type)}," for each in function.parameters]
        rows.append("    ]),")
    rows += ["}", "", "",
             "def declare(library):",
             '    """Gives every function of a loaded library its types."""',
             "    for name, (result, parameters) in FUNCTIONS.items():",
             "        function = getattr(library, name)",
             "        function.restype = result",
             "        function.argtypes = parameters", ""]
    return "\n".join(rows)
