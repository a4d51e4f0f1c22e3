"""The commands of `kernelindex`: each reads its arguments, calls one function and prints."""
