"""A program whose first thread has ended, like 300 others that a tracer keeps from being reaped. The last one lives."""

TRACED = r"""
import ctypes, os, threading, time
libc, me = ctypes.CDLL(None), os.getpid()
(ask, asked), (tell, told) = os.pipe(), os.pipe()
if os.fork() == 0:
    lives = os.read(ask, 20).decode()
    for thread in os.listdir(f"/proc/{me}/task"):
        if thread != lives:
            libc.ptrace(0x4206, int(thread), 0, 0)  # seizes it
    os.write(told, b".")
    while os.path.exists(f"/proc/{me}/task/{lives}"):
        time.sleep(0.05)
    os._exit(0)
end = threading.Event()
def ended(thread):
    return open(f"/proc/{me}/task/{thread}/stat").read().rpartition(")")[2].split()[0] == "Z"
def live():
    os.write(asked, str(threading.get_native_id()).encode())
    os.read(tell, 1)
    end.set()
    while sum(map(ended, os.listdir(f"/proc/{me}/task"))) < 301:
        time.sleep(0.01)
    print(flush=True)
    time.sleep(600)
for _ in range(300):
    threading.Thread(target=end.wait).start()
threading.Thread(target=live).start()
end.wait()
libc.syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""
