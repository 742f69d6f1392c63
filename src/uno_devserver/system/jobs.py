"""Job objects of Windows, which do there what process groups do elsewhere. Imported only on Windows.

A child begins suspended, so that nothing that it starts can miss its job. The system ends the processes of a job when
its last handle is closed, which happens even if this process is killed; those of a child that outlives this process are
an exception. A process that asks to break away from its job leaves it, like a new session elsewhere.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from ctypes import wintypes

assert sys.platform == "win32"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

CREATE_SUSPENDED = 0x4
BREAKAWAY_OK, KILL_ON_JOB_CLOSE = 0x800, 0x2000
ACCOUNTING_INFORMATION, EXTENDED_LIMIT_INFORMATION = 1, 9
KILLED = 1  # the exit code, as of TerminateProcess in `Popen.kill`


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
        ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_ulonglong * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class _Accounting(ctypes.Structure):
    _fields_ = (
        ("Times", wintypes.LARGE_INTEGER * 4),
        ("TotalPageFaultCount", wintypes.DWORD),
        ("TotalProcesses", wintypes.DWORD),
        ("ActiveProcesses", wintypes.DWORD),
        ("TotalTerminatedProcesses", wintypes.DWORD),
    )


_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.CreateJobObjectW.argtypes = (wintypes.LPVOID, wintypes.LPCWSTR)
_kernel.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD)
_kernel.QueryInformationJobObject.argtypes = (
    *(wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD, wintypes.LPDWORD),
)
_kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
_resume_process = ctypes.WinDLL("ntdll").NtResumeProcess
_resume_process.argtypes = (wintypes.HANDLE,)


class Job:
    """The processes of one child. They end with this object, unless the child `outlives` this process."""

    def __init__(self, *, outlives: bool) -> None:
        self._handle: int | None = _kernel.CreateJobObjectW(None, None)
        _check(self._handle)
        self._limit(BREAKAWAY_OK if outlives else BREAKAWAY_OK | KILL_ON_JOB_CLOSE)

    def __del__(self) -> None:
        if self._handle:
            _kernel.CloseHandle(self._handle)

    def take(self, process: int) -> None:
        """Add a process, by its handle; what it starts from now on belongs to the job too."""
        _check(_kernel.AssignProcessToJobObject(self._handle, process))

    def spare(self) -> None:
        """Let the processes go on when this object ends."""
        self._limit(BREAKAWAY_OK)

    def kill(self) -> None:
        _kernel.TerminateJobObject(self._handle, KILLED)

    def has_processes(self) -> bool:
        found = _Accounting()
        size = ctypes.sizeof(found)
        _check(_kernel.QueryInformationJobObject(self._handle, ACCOUNTING_INFORMATION, ctypes.byref(found), size, None))
        return bool(found.ActiveProcesses)

    def _limit(self, flags: int) -> None:
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = flags
        size = ctypes.sizeof(limits)
        _check(_kernel.SetInformationJobObject(self._handle, EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), size))


def start_in_job(
    popen: type[subprocess.Popen[bytes]], line: Sequence[str] | str, options: Mapping[str, Any], *, outlives: bool
) -> tuple[subprocess.Popen[bytes], Job]:
    """Start a process in a job of its own; raises OSError.

    One that `outlives` this process leaves the jobs of this process, too, if they permit that.
    """
    job = Job(outlives=outlives)
    flags = options.get("creationflags", 0) | CREATE_SUSPENDED
    breakaway = subprocess.CREATE_BREAKAWAY_FROM_JOB if outlives else 0
    try:
        process = popen(line, **{**options, "creationflags": flags | breakaway})
    except PermissionError:
        if not breakaway:
            raise
        process = popen(line, **{**options, "creationflags": flags})
    handle = int(process._handle)  # type: ignore[attr-defined]  # it is the handle of the process itself, not of its id
    try:
        job.take(handle)
        if _resume_process(handle) < 0:
            raise OSError(f"process {process.pid} cannot be resumed")
    except BaseException:
        with process:  # which closes its pipes, and waits for its end
            process.kill()
        raise
    return process, job


def _check(succeeded: int | None) -> None:
    if not succeeded:
        raise ctypes.WinError(ctypes.get_last_error())
