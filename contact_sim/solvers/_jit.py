"""Compilation of kernels: one set of numba options, linking, cache, views, function pointers.

No fast-math: the same inputs give the same bits on every run, and NaN is never optimised away.

Four decorators:

    kernel     called by other kernels and by Python
    entry      called by Python only; releases the GIL
    pointer    compiled once, and called by kernels through its address
    on_demand  a pointer that is compiled when a kernel first calls it

Compiled kernels are cached on disk by a hash of their module and of all modules of this package
that it imports, of the versions of numba and NumPy, and of the processor. numba's own cache looks
only at the file of the outermost function, so it would keep an old version of a kernel or constant
that lives elsewhere; and it looks at the path of that file, so each installation would compile
anew.
"""

from __future__ import annotations

import _thread
import ctypes
import fcntl
import gc
import hashlib
import os
import re
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, cached_property, partial, partialmethod, update_wrapper
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import base, caching, cgutils, event, sigutils
from numba.core import ir as numba_ir
from numba.core.ccallback import CFunc
from numba.core.cgutils import ir
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler
from numba.core.imputils import RefType, iternext_impl
from numba.cpython.rangeobj import make_range_iterator
from numba.extending import intrinsic, lower_builtin
from numba.np import arrayobj

# Linking. By default numba optimises every function together with all that it calls, and writes
# machine code for it, before it links it into its callers, which are optimised and written in
# turn: a kernel at depth ten is optimised ten times. Here a function that is called by another one
# is only tidied up; the outermost function, the one that Python calls, is optimised as a whole and
# is the only one cached. The bits are the same, and a first start takes less than half of the
# time. This is built on numba's custom compilers (`pipeline_class`), with a code library that
# ends early.

_number = count()
OVERRIDDEN_METHODS = (
    '_optimize_final_module',
    '_finalize_final_module',
    '_finalize_dynamic_globals',
)
CAN_LINK = all(hasattr(JITCodeLibrary, name) for name in OVERRIDDEN_METHODS)
"""Whether this numba has these methods; if not, functions compile as usual."""
CAN_TIDY = hasattr(ll, 'create_new_function_pass_manager')
"""Whether this llvmlite lets passes be chosen so."""


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of one function as its callers link it: LLVM IR without machine code."""

    def _optimize_functions(self, module: Any) -> None:
        """Keep variables in registers and join blocks, which makes the code a fraction as long."""
        if not CAN_TIDY:
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        builder, passes = self._codegen._pass_builder(opt=0), ll.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Leave the optimisation to the outermost caller."""

    def _finalize_final_module(self) -> None:
        """Finish without machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the null pointer: nothing calls the function by its address."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> LinkedLibrary:
        """Return the object that numba asks to set the environment of the function."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the environment belongs to machine code."""


# What numba does again and again while it compiles is done once, or not at all: it tries every
# known implementation of an operation for the same types, inspects the same functions, searches
# strings and numbers for variables, tells listeners of every pass and every call of LLVM, and
# collects garbage, of which nothing can be freed yet. Some of its functions are replaced until the
# outermost kernel is compiled; the code that comes out computes the same.


class _Shortcuts:
    """Replacements for functions of numba, in place while kernels compile.

    `depth` counts the functions that are being compiled, one within the other; numba compiles in
    one thread at a time.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._known: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self._ask = types.BaseFunction.get_call_type
        self._replaced: list[tuple[Any, str, Any]] = []
        self._collected = False

    def begin(self) -> None:
        """Take the shortcuts from now on, and leave garbage where it is."""
        self.depth += 1
        if self.depth > 1:
            return
        self._ask = types.BaseFunction.get_call_type
        self._replace(types.BaseFunction, 'get_call_type', partialmethod(_answer, self))
        self._replace(base, '_has_loc', cache(base._has_loc))
        self._replace(numba_ir.Inst, '_rec_list_vars', variables_in)
        self._replace(ll, 'create_pipeline_tuning_options', _tuned_for_short_loops)
        self._replace(event, 'start_event', _tell_nobody)
        self._replace(event, 'end_event', _tell_nobody)
        self._replace(arrayobj, 'fix_integer_index', _index_as_it_is)
        self._collected = gc.isenabled()
        gc.disable()

    def end(self) -> None:
        """Give numba its functions back after the outermost function."""
        self.depth -= 1
        if self.depth > 0:
            return
        while self._replaced:
            setattr(*self._replaced.pop())
        self._known.clear()
        if self._collected:
            gc.enable()

    def _replace(self, owner: Any, name: str, replacement: Any) -> None:
        if name in vars(owner):  # other versions of numba may have none
            self._replaced.append((owner, name, vars(owner)[name]))
            setattr(owner, name, replacement)

    def answer(self, function: Any, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call of one of numba's functions with these types."""
        if kws:
            return self._ask(function, context, args, kws)
        key = id(function), context, tuple(args)
        found, _ = self._known.get(key, (None, None))
        if found is None:
            found = self._ask(function, context, args, kws)
            self._known[key] = found, function  # which keeps its id
        return found


def _answer(function: Any, shortcuts: _Shortcuts, context: Any, args: Any, kws: Any) -> Any:
    return shortcuts.answer(function, context, args, kws)


def variables_in(instruction: Any, value: Any) -> list[Any]:
    """Return the variables in a value of numba's intermediate representation."""
    if isinstance(value, numba_ir.Var):
        return [value]
    if isinstance(value, numba_ir.Inst):
        return list(value.list_vars())
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list, tuple)):
        return []
    return [one for part in parts if type(part) not in NO_VARIABLES
            for one in variables_in(instruction, part)]  # fmt: skip


NO_VARIABLES = frozenset({str, int, float, bool, type(None), numba_ir.Loc})


def _tell_nobody(*arguments: Any, **named: Any) -> None:
    """Do nothing."""


_tuning_options = getattr(ll, 'create_pipeline_tuning_options', None)


def _tuned_for_short_loops(*arguments: Any, **named: Any) -> Any:
    """Return LLVM's options with loops that take one vector at a time.

    By default the vector form of a loop takes four at a time, and of what is left, which is all of
    a loop over 12 or 18 numbers, it takes one number at a time.
    """
    assert _tuning_options is not None
    options = _tuning_options(*arguments, **named)
    options.loop_interleaving = False
    return options


SHORTCUTS = _Shortcuts()


class QuickCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler with shortcuts."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Return the compiled function."""
        SHORTCUTS.begin()
        try:
            return super().compile_extra(function)
        finally:
            SHORTCUTS.end()


class LinkedCompiler(QuickCompiler):
    """The same with a `LinkedLibrary`."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = LinkedLibrary(targetctx.codegen(), f'linked{next(_number)}')
        super().__init__(typingctx, targetctx, library, *rest)


def linked(function: Callable[..., Any], **options: Any) -> Any:
    """Return `function` compiled for compiled callers.

    Literal arguments get no version of their own: 0 is an integer like any other.
    """
    if not CAN_LINK:
        return numba.njit(**options)(function)
    inner = numba.njit(
        pipeline_class=LinkedCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options
    )(function)
    find = inner.get_call_template

    def get_call_template(arguments: Any, by_name: Any) -> Any:
        types_of = {name: types.unliteral(kind) for name, kind in by_name.items()}
        return find(tuple(map(types.unliteral, arguments)), types_of)

    inner.get_call_template = get_call_template
    return inner


# Indices and loops. For numba an index below zero counts from the end, so it compares each with
# zero. In kernels none does. In its `range` the next number may overflow: LLVM often cannot tell
# that `k` of `for k in range(n)` is not below zero, and loops take one number at a time instead of
# a vector. Here it may not.

DOUBLE, INT64 = ir.DoubleType(), ir.IntType(64)
_fix_index = arrayobj.fix_integer_index


def _index_as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """Return the code of an index into an array: in kernels none counts from the end."""
    if PACKAGE.name in builder.function.name:
        return context.cast(builder, index, kind, types.intp)
    return _fix_index(context, builder, kind, index, size)


@lower_builtin('iternext', types.range_iter64_type)
@iternext_impl(RefType.BORROWED)
def next_of_range(context: Any, builder: Any, signature: Any, arguments: Any, result: Any) -> None:
    """Yield the next number of a range as numba does, in an addition that does not overflow."""
    numbers = make_range_iterator(types.range_iter64_type)(context, builder, arguments[0])
    left = builder.load(numbers.count)
    is_valid = builder.icmp_signed('>', left, INT64(0))
    result.set_valid(is_valid)
    with builder.if_then(is_valid):
        value = builder.load(numbers.iter)
        result.yield_(value)
        builder.store(builder.sub(left, INT64(1), flags=['nsw']), numbers.count)
        builder.store(builder.add(value, numbers.step, flags=['nsw']), numbers.iter)


# Calls through function pointers. Few simulations use faceted ground. Compiled into every contact
# model, the search over facets would make each first start a tenth longer; so it is compiled once,
# when such a ground is first made, and the kernels get its address with the ground.

ITEM = 8  # bytes of a number and of an index
CURVATURE_SIZE = 6  # entries of a curvature: xx, xy, xz, yy, yz, zz
NUMBERS = DOUBLE.as_pointer()
GROUND_ARGUMENTS = INT64, NUMBERS, NUMBERS, INT64
"""Types of kind, data, relief and length of the relief."""


def _array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return arrayobj.make_array(kind)(context, builder, value)


def _ground(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return kind, data, relief, and length of the relief of a `Ground`."""
    data, relief = (
        _array(context, builder, kind.types[k], builder.extract_value(value, k)) for k in (1, 2)
    )
    (length,) = cgutils.unpack_tuple(builder, relief.shape)
    return [builder.extract_value(value, 0), data.data, relief.data, length]


def call_address(builder: Any, address: Any, kinds: tuple[Any, ...], arguments: list[Any]) -> None:
    """Write a call of the function at an address, with arguments of these types."""
    function = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
    builder.call(builder.inttoptr(address, function), arguments)


@intrinsic
def call_find_facets(
    typingctx: Any, ground: Any, x: Any, y: Any, z: Any, reach: Any, listed: Any, found: Any,
    first: Any, slots: Any,
) -> Any:  # fmt: skip
    """Call `find_facets` through the address in `ground`; arguments as `find_listed`."""
    whole, real = types.intp, types.float64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ground, x, y, z, reach, listed, found, first, slots = arguments
        kinds = signature.args
        out = [
            _array(context, builder, kinds[6].types[k], builder.extract_value(found, k)).data
            for k in range(3)
        ]
        ground_arguments = _ground(context, builder, kinds[0], ground)
        call_address(
            builder, builder.extract_value(ground, 3),
            (*GROUND_ARGUMENTS, *4 * [DOUBLE], INT64, *3 * [NUMBERS], INT64, INT64),
            [*ground_arguments, x, y, z, reach, listed, *out, first, slots],
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(ground, real, real, real, real, whole, found, whole, whole), codegen


@intrinsic
def call_facet_curvature(typingctx: Any, ground: Any, feature: Any, x: Any, y: Any, z: Any) -> Any:
    """Call `facet_curvature` through the address in `ground`; return its six numbers."""
    real = types.float64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ground, feature, x, y, z = arguments
        out = cgutils.alloca_once(builder, DOUBLE, size=INT64(CURVATURE_SIZE))
        ground_arguments = _ground(context, builder, signature.args[0], ground)
        call_address(
            builder, builder.extract_value(ground, 4),
            (*GROUND_ARGUMENTS, *4 * [DOUBLE], NUMBERS),
            [*ground_arguments, feature, x, y, z, out],
        )  # fmt: skip
        numbers = [builder.load(builder.gep(out, [INT64(k)])) for k in range(CURVATURE_SIZE)]
        return context.make_tuple(builder, signature.return_type, numbers)

    return types.UniTuple(real, CURVATURE_SIZE)(ground, real, real, real, real), codegen


@intrinsic
def call_find_edges(
    typingctx: Any, ground: Any, x: Any, y: Any, z: Any, reach: Any, listed: Any, edges: Any
) -> Any:  # fmt: skip
    """Call `find_edges` through the address in `ground`; arguments as there."""
    real = types.float64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ground, x, y, z, reach, listed, edges = arguments
        out = _array(context, builder, signature.args[6], edges).data
        ground_arguments = _ground(context, builder, signature.args[0], ground)
        call_address(
            builder, builder.extract_value(ground, 6),
            (*GROUND_ARGUMENTS, *4 * [DOUBLE], INT64, NUMBERS),
            [*ground_arguments, x, y, z, reach, listed, out],
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(ground, real, real, real, real, types.intp, edges), codegen


def _vector_at(address: Any, item: Any) -> tuple[Any, Any] | None:
    """Return signature and code of a view: (address, length) → vector."""
    if not isinstance(address, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, size = signature.return_type, arguments[1]
        view = arrayobj.make_array(kind)(context, builder)
        arrayobj.populate_array(
            view, data=builder.inttoptr(arguments[0], view.data.type),
            shape=cgutils.pack_array(builder, [size]),
            strides=cgutils.pack_array(builder, [context.get_constant(types.intp, ITEM)]),
            itemsize=context.get_constant(types.intp, ITEM), meminfo=None, parent=None,
        )  # fmt: skip
        return view._getvalue()

    return types.Array(item, 1, 'C')(types.intp, types.intp), codegen


@intrinsic
def numbers_at(typingctx: Any, address: Any, length: Any) -> Any:
    """Return the `length` numbers at an address as a vector."""
    return _vector_at(address, types.float64)


@intrinsic
def integers_at(typingctx: Any, address: Any, length: Any) -> Any:
    """Return the `length` integers at an address as a vector."""
    return _vector_at(address, types.int64)


@intrinsic
def call_with_arrays(typingctx: Any, address: Any, data: Any) -> Any:
    """Call the function at an address with the three addresses in `data`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, data = arguments
        addresses = [builder.extract_value(data, k) for k in range(3)]
        call_address(builder, address, (INT64, INT64, INT64), addresses)
        return context.get_dummy_value()

    return types.void(types.intp, data), codegen


@intrinsic
def call_with_rows(typingctx: Any, address: Any, rows: Any, impulse: Any, numbers: Any) -> Any:
    """Call the function at an address with the sizes n and nc, and with the arrays of `Rows`."""
    if any(kind.layout != 'C' for kind in (*rows.types, impulse, numbers)):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, rows, impulse, numbers = arguments
        kinds = (*signature.args[1].types, *signature.args[2:])
        values = *(builder.extract_value(rows, k) for k in range(len(rows.type))), impulse, numbers
        arrays = [_array(context, builder, *pair) for pair in zip(kinds, values, strict=True)]
        n, nc = (cgutils.unpack_tuple(builder, arrays[k].shape)[0] for k in (1, 2))
        call_address(
            builder, address, (INT64, INT64, *len(arrays) * [NUMBERS]),
            [n, nc, *(array.data for array in arrays)],
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(types.intp, rows, impulse, numbers), codegen


# Kernels, and where they are cached.

PACKAGE = Path(__file__).resolve().parent.parent
KERNELS: defaultdict[str, list[Kernel]] = defaultdict(list)
"""Kernels of every imported module, by module."""
OPTIONS = {'error_model': 'numpy'}
IMPORT = re.compile(rf'^from {PACKAGE.name}\.([\w.]+) import (\([^)]*\)|.+)', re.MULTILINE)


def _place(module: str) -> Path:
    return PACKAGE.joinpath(*module.split('.'))


@cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the text of a module, and the modules of this package that it imports."""
    place = _place(module)
    file = place / '__init__.py' if place.is_dir() else place.with_suffix('.py')
    text = file.read_bytes()
    imported = []
    for room, names in IMPORT.findall(text.decode()):
        imported.append(room)
        modules = [f'{room}.{name}' for name in re.findall(r'\w+', names)]
        imported += [name for name in modules if _place(name).with_suffix('.py').exists()]
    return text, tuple(imported)


def _reached(modules: Iterable[str]) -> set[str]:
    """Return these modules and all modules of this package that they import."""
    reached: set[str] = set()
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _source(name)[1]
    return reached


def entries_in(room: str) -> list[Any]:
    """Return the entries in modules whose full names begin with `room`."""
    within = room.removeprefix(f'{PACKAGE.name}.')
    found = [
        kernel for module, all_ in KERNELS.items() if module.startswith(within) for kernel in all_
    ]
    return [kernel.compiled for kernel in found if isinstance(kernel, Entry)]


def progress(entries: Iterable[Any]) -> tuple[int, int]:
    """Return how many of the kernels that entries run were compiled, and how many there are.

    Args:
        entries: what `entry` returned.
    """
    run: set[Kernel] = set()
    waiting = [entry.py_func for entry in entries]
    while waiting:
        function = waiting.pop()
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        new = {kernel for kernel in called if isinstance(kernel, Kernel)} - run
        run |= new
        waiting += [kernel.py_func for kernel in new]
    return sum(kernel.ready for kernel in run), len(run)


@cache
def cache_folder(module: str) -> str:
    """Return the folder for the kernels of a module of this package."""
    processor = f'{ll.get_host_cpu_name()} {ll.get_host_cpu_features().flatten()}'
    digest = hashlib.sha256(f'{numba.__version__} {np.__version__} {processor}'.encode())
    for name in sorted(_reached([module])):
        digest.update(_source(name)[0])
    chosen = os.environ.get('NUMBA_CACHE_DIR')
    home = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'contact_sim'
    return str((Path(chosen) if chosen else home) / f'kernels-{digest.hexdigest()[:12]}')


class KernelLocator(caching._CacheLocator):  # type: ignore[misc]
    """Where numba finds a compiled kernel: the name of the folder says what it is made of."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._folder = cache_folder(_module(function))
        self._py_file, self._lineno = file, function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._folder

    def get_source_stamp(self) -> None:
        """Return nothing: the folder of other sources is another one."""

    def get_disambiguator(self) -> str:
        """Return what distinguishes functions of one name in a module."""
        return str(self._lineno)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator:
        """Return the locator of a function."""
        return cls(function, file)


class KernelFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """How numba writes compiled kernels."""

    _locator_classes = (KernelLocator,)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The compiled versions of a kernel on disk.

    Processes that need the same one at once compile it once: the others wait for the first.
    """

    _impl_class = KernelFiles
    _lock: int | None = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._is_set_up = False

    def _set_up(self) -> None:
        """Find the place on disk, on first use: that of all entries would take long at import."""
        if not self._is_set_up:
            super().__init__(self._function)
            self._is_set_up = True

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the version for these types, or None: then it is to be compiled and saved."""
        found = self._load(signature, target_context)
        if found is None:
            self._wait()
            found = self._load(signature, target_context)
            if found is not None:
                self._end()
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        """Save the version for these types."""
        self._set_up()
        try:
            super().save_overload(signature, data)
        except OSError:
            _warn_of(Path(self._cache_path).parent)
        finally:
            self._end()

    def _load(self, signature: Any, target_context: Any) -> Any:
        self._set_up()
        try:
            return super().load_overload(signature, target_context)
        except OSError:
            _warn_of(Path(self._cache_path).parent)
            return None

    def _wait(self) -> None:
        """Wait until no other process compiles it; it is compiled anyway after `LONGEST_WAIT`."""
        self._end()  # that of a compilation which was interrupted
        try:
            Path(self._cache_path).mkdir(parents=True, exist_ok=True)
            file = Path(self._cache_path, f'{self._impl.filename_base}.lock')
            self._lock = os.open(file, os.O_CREAT | os.O_WRONLY)
        except OSError:
            return  # said when it is saved
        end = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < end:
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.02)

    def _end(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


LONGEST_WAIT = 120.0
"""How long a process waits for another one that compiles the same kernel [s]."""


@cache
def _warn_of(folder: Path) -> None:
    warnings.warn(
        f'compiled kernels cannot be kept in {folder}, so that every process compiles them anew: '
        'set NUMBA_CACHE_DIR to a folder that can be written',
        RuntimeWarning,
        stacklevel=1,
    )


class Kernel:
    """A function compiled on first use: once for other kernels, once for Python.

    Hundreds are made at import; a simulation that finds its entries on disk compiles none of them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function

    @cached_property
    def linked(self) -> Any:
        """The version that other kernels call."""
        return linked(self.py_func, **OPTIONS)

    @cached_property
    def compiled(self) -> Any:
        """The version that Python calls, cached on disk."""
        return _compiled(self.py_func, nogil=False)

    @property
    def _numba_type_(self) -> Any:
        """The type that numba sees where another kernel calls this one."""
        return self.linked._numba_type_

    @property
    def ready(self) -> bool:
        """Whether a version of it is compiled or loaded."""
        versions = (vars(self).get(name) for name in ('linked', 'compiled'))
        return any(version is not None and version.overloads for version in versions)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the version for Python."""
        return self.compiled(*arguments, **named)


class Entry(Kernel):
    """A kernel that only Python calls."""

    @cached_property
    def compiled(self) -> Any:
        """The version that Python calls, cached on disk; it releases the GIL."""
        return _compiled(self.py_func, nogil=True)


class Pointer:
    """A compiled function that kernels call through its address.

    Compiled once, and not into each of its callers: for code that few simulations need. Compiled
    or loaded from disk when the address is first used.
    """

    def __init__(self, signature: Any, function: Callable[..., None]) -> None:
        self.__doc__ = function.__doc__
        self._signature, self._function = signature, function

    @cached_property
    def address(self) -> int:
        """Address of its machine code, valid as long as this object lives."""
        return int(self._callback.address)

    @cached_property
    def _callback(self) -> Any:
        arguments, result = sigutils.normalize_signature(self._signature)
        made = CFunc(self._function, (arguments, result), {}, OPTIONS, QuickCompiler)
        made._cache = KernelCache(self._function)
        made.compile()
        return made


class OnDemand(Pointer):
    """A compiled function for code that most simulations need seldom or never.

    Kernels read its address where they call it, from a place in memory of which the linker knows
    the name. First a function of Python stands there, which compiles it and calls it.
    """

    def __init__(self, signature: Any, function: Callable[..., None]) -> None:
        super().__init__(signature, function)
        self.name, self.compiled = function.__name__, False
        kinds, _ = sigutils.normalize_signature(signature)
        self._prototype = ctypes.CFUNCTYPE(
            None,
            *(ctypes.c_void_p if isinstance(kind, types.CPointer) else ctypes.c_int64
              for kind in kinds),
        )  # fmt: skip
        self._first = self._prototype(self._compile_and_call)
        self._place = ctypes.c_int64(ctypes.cast(self._first, ctypes.c_void_p).value or 0)
        symbol = f'{PACKAGE.name}_{function.__name__}'
        ll.add_symbol(symbol, ctypes.addressof(self._place))
        self.current_address = _value_of(symbol)
        ON_DEMAND.append(self)

    def compile(self) -> None:
        """Compile it, or load it from disk, before a kernel needs it."""
        self._place.value = self.address
        self.compiled = True

    def _compile_and_call(self, *arguments: int) -> None:
        try:
            self.compile()
        except KeyboardInterrupt:  # an exception would end here, and the kernel go on
            threading.Timer(AFTER_THE_CALL, _thread.interrupt_main).start()
            self.compile()
        self._prototype(self.address)(*arguments)


ON_DEMAND: list[OnDemand] = []
AFTER_THE_CALL = 0.1
"""Wall seconds until an interruption is repeated [s]."""


def compile_what_is_rare() -> None:
    """Compile or load what kernels call on demand, for programs that must not wait for it."""
    for function in ON_DEMAND:
        function.compile()


def _value_of(symbol: str) -> Any:
    """Return an intrinsic without arguments: the integer at the place with that name."""

    @intrinsic
    def value(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.module.globals.get(symbol)
            return builder.load(place or ir.GlobalVariable(builder.module, INT64, symbol))

        return types.intp(), codegen

    return value


def pointer(signature: Any) -> Callable[[Callable[..., None]], Pointer]:
    """Return a decorator that makes a `Pointer` of a function with this signature."""
    return partial(Pointer, signature)


def on_demand(signature: Any) -> Callable[[Callable[..., None]], OnDemand]:
    """Return a decorator that makes an `OnDemand` of a function with this signature."""
    return partial(OnDemand, signature)


def kernel(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, without reference to Python objects."""
    return _registered(Kernel(function))


def entry(function: Callable[..., Any]) -> Any:
    """Return a kernel that only Python calls; it releases the GIL."""
    return _registered(Entry(function)).compiled


def part_on_demand(function: Any, signature: Any, at_addresses: Any, through_address: Any) -> Any:
    """Return a function of arrays as a kernel that is compiled when it first runs.

    Args:
        function: takes tuples of addresses.
        signature: of a function that takes these addresses one by one.
        at_addresses: template with this signature that calls `part` with the tuples.
        through_address: template of the kernel: it calls the function at `address()`.
    """
    module, name = function.__module__, function.__name__
    own = {'part': kernel(function), '__name__': module}
    compiled = on_demand(signature)(with_globals(at_addresses, name, own))
    own = {'address': compiled.current_address, '__name__': module}
    caller = with_globals(through_address, f'call_{name}', own)
    caller.__doc__ = function.__doc__
    return kernel(caller)


def with_globals(template: Any, name: str, replaced: dict[str, Any]) -> Any:
    """Return `template` as the function `name` with other values of its globals.

    Globals, not closure variables: numba finds a function on disk by its file, qualified name and
    byte code, and by its pickled closure, which differs from process to process.
    """
    function = FunctionType(template.__code__, template.__globals__ | replaced, name)
    function.__qualname__, function.__doc__ = name, template.__doc__
    return function


def _registered(made: Kernel) -> Kernel:
    KERNELS[_module(made.py_func)].append(made)
    return made


def _module(function: Callable[..., Any]) -> str:
    return function.__module__.removeprefix(f'{PACKAGE.name}.')


def _compiled(function: Callable[..., Any], nogil: bool) -> Any:
    """Return the function compiled for calls from Python."""
    options = {'nogil': nogil, 'no_cfunc_wrapper': True, **OPTIONS}
    made = numba.njit(pipeline_class=QuickCompiler, **options)(function)
    made._cache = KernelCache(function)
    return made
