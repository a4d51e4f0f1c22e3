"""The words of a result: statuses, reason codes with one sentence each, states, exit codes."""

from enum import Enum


class Status(str, Enum):
    """How one item ended; the names are FlashInfer-Bench's where it has one."""

    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    REWARD_HACK = "REWARD_HACK"
    INFRASTRUCTURE_ERROR = "INFRASTRUCTURE_ERROR"
    CANCELLED = "CANCELLED"


#: Statuses that say something about the solution; the others carry no score and no trace row.
SCORED_STATUSES = frozenset(Status) - {Status.INFRASTRUCTURE_ERROR, Status.CANCELLED}


class State(str, Enum):
    """How the whole bundle ended."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    INFRASTRUCTURE_ERROR = "infrastructure_error"


class ExitCode:
    """Exit codes of the worker; a cancelled worker exits with 128 plus the signal."""

    RESULT_WRITTEN = 0
    REFUSED = 2
    INFRASTRUCTURE = 3
    GPU_BUSY = 4


REASONS: dict[str, str] = {
    # what the comparison found
    "WRONG_SHAPE": "An output does not have the shape that the definition gives.",
    "WRONG_DTYPE": "An output does not have the data type that the definition gives.",
    "WRONG_DEVICE": "An output does not lie on the device of the inputs.",
    "WRONG_OUTPUT_COUNT": "The solution did not hand back one value per output.",
    "OUT_OF_TOLERANCE": "Too many elements differ from the reference by more than the tolerance.",
    "NAN_OUTPUT": "The solution's output holds NaN where the reference is finite.",
    "NAN_BOTH_SIDES": "Reference and solution both hold NaN; that never counts as a match.",
    "INFINITY_MISMATCH": "Infinities are not where the reference has them, with the same sign.",
    "FAILED_RECHECK": "A timed call returned a wrong result although the checks before passed.",
    # what looks like cheating
    "STALE_OUTPUT": "The output belongs to other inputs that an earlier call was given.",
    "STARTED_EARLY": "The work began before the call's place in the stream, on older contents.",
    "CHANGED_AFTER_CHECK": "Timed calls returned something else than the checked calls did.",
    "UNSYNCHRONIZED_WORK": "The output was not ready when the call's place in the stream was over.",
    "MUTATED_INPUT": "The call changed an input that the reference leaves alone.",
    "ALIASED_INPUT": "An output shares memory with an input.",
    "LAZY_OUTPUT": "An output is a tensor subclass, which can postpone its work.",
    "PATCHED_RUNTIME": "Timing, comparison or tensor functions were replaced by the solution.",
    "HARNESS_TAMPERING": "The solution wrote into the channel between harness and supervisor.",
    "TIMER_DISAGREES": "The reported time is far below what clocks outside the process saw.",
    "FASTER_THAN_ROOFLINE": "The median is below the time that the bytes or operations must take.",
    # what kept a solution from running
    "BUILD_FAILED": "The sources did not compile.",
    "IMPORT_FAILED": "The solution's module did not load.",
    "ENTRY_POINT_MISSING": "The entry point names a file or function that is not there.",
    "UNSAFE_SOURCE_PATH": "A source path is absolute or leaves the solution's folder.",
    "UNSUPPORTED_LANGUAGE": "This worker builds python, triton and cuda only.",
    "UNSUPPORTED_BINDING": "This worker binds cuda sources through torch only.",
    "RAISED": "The solution raised an exception.",
    "DIED": "The solution's process ended in the middle of a call.",
    "TOO_SLOW": "The item used up its time.",
    "MEMORY_LIMIT": "The solution's process used more host memory than the bundle allows.",
    # what is nobody's fault but the machine's
    "MISSING_DEPENDENCY": "A library that the solution imports is not installed here.",
    "TOOLCHAIN_MISSING": "There is no compiler here for the solution's language.",
    "REFERENCE_FAILED": "The definition's reference could not be run.",
    "REFERENCE_NOT_FINITE": "The reference itself holds NaN for these inputs.",
    "UNSUPPORTED_COMPARISON": "Outputs of this family are random samples; they cannot be compared.",
    "UNSUPPORTED_WORKLOAD": "The workload's inputs cannot be made by this worker.",
    "MISSING_TENSOR": "A tensor file is missing or is only a pointer to it.",
    "WORKER_FAILED": "The worker itself failed.",
    "CANCELLED_BY_SIGNAL": "The worker was told to stop before the item was finished.",
    "DEADLINE_REACHED": "The deadline came before the item was finished.",
    # calibration
    "CPU_FALLBACK": "Measured on a CPU, for tests only; this can never become verified.",
    "NO_STORED_LIMITS": "No calibration limits are stored for this GPU product.",
    "BELOW_STORED_LIMIT": "A calibration value is worse than the stored limit.",
    "CALIBRATION_DRIFT": "Calibration before and after differ by more than is allowed.",
    "CALIBRATION_FAILED": "Calibration could not be run.",
    "THROTTLED": "The GPU reported a hardware or thermal slowdown.",
    "GPU_MISMATCH": "The GPU that was locked is not the GPU that was measured.",
    "GPU_SHARED": "Other processes were using the GPU.",
    # notes, which change no status
    "CACHED_BUILD": "The library came from a build cache and was not compiled in this run.",
    "INPUTS_NOT_VARIED": "No input is random, so contents were the same in every call.",
    "MUTATES_LIKE_REFERENCE": "The reference changes this input too: not held against it.",
    "STREAM_LEFT_CHANGED": "The call left another stream current; the harness put it back.",
    "FEWER_SAMPLES": "Fewer samples than asked for, because single calls are slow.",
    "NO_ROOFLINE": "No floor is known for this device, family or data type.",
    "WEAK_REFERENCE_TIMING": "The reference is slow and was sampled only as often as time allowed.",
}


def reason(code: str, detail: str = "") -> dict[str, str]:
    """One reason as the result bundle holds it: `code` and `text`.

    Raises `KeyError` for a code that `REASONS` does not explain.
    """
    sentence = REASONS[code]
    return {"code": code, "text": f"{sentence} {detail}".strip()}
