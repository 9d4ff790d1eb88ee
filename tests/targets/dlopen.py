# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dlopen.py [--deepbind] [--copy DIR] [--delete] LIBRARY: loads a library into the process, then is busy.

LIBRARY "self" is this Python's own libpython, by its usual name. --copy loads a copy made in DIR, --delete removes that
copy after loading. With a libpython the process holds a second runtime, which is never initialised.

Right profile: <module>;spin > 99 %, and the version of the Python that runs, whatever was loaded.
"""
import ctypes
import os
import shutil
import signal
import sys
import sysconfig

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
arguments = sys.argv[1:]
flags = os.RTLD_NOW
if arguments[0] == "--deepbind":
    flags |= os.RTLD_DEEPBIND
    del arguments[0]
copy_to = None
if arguments[0] == "--copy":
    copy_to = arguments[1]
    del arguments[:2]
delete = arguments[0] == "--delete"
library = arguments[-1]
if library == "self":
    free_threaded = "t" if "t" in sys.abiflags else ""
    library = "libpython%d.%d%s.so.1.0" % (*sys.version_info[:2], free_threaded)
    own = os.path.join(sysconfig.get_config_var("LIBDIR"), library)
    if os.path.exists(own):
        library = own
if copy_to:
    copy = os.path.join(copy_to, os.path.basename(library))
    shutil.copy(library, copy)
    library = copy
loaded = ctypes.CDLL(library, mode=flags)
if copy_to and delete:
    os.remove(library)


def spin():
    while True:
        sum(range(200))


print("ready", flush=True)
spin()
