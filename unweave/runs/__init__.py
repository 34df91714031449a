"""The run folder on disk. Every write is atomic; loading never executes code.

runs/<name>/config.json               the configuration, complete, to repeat the run
           model.json                 form of the data and names of the classes
           labels.safetensors         the labelled observations
           log.jsonl                  one record per line
           checkpoint.safetensors     the latest training state
           checkpoint.previous.safetensors  the one before it, used if the latest is damaged
           weights.safetensors        the weights of the finished model
           time.json                  training time and device
           .lock                      held by the process that trains the run
           scores.json, samples/      written by evaluation and reports
"""

from unweave.runs.environment import environment, versions
from unweave.runs.files import existing_folder_error, unwritable, write_atomic, write_files
from unweave.runs.folder import CHECKPOINT, WEIGHTS, RunFolder, current_name, damaged, is_damaged, list_runs
from unweave.runs.memory import MemoryRun
from unweave.runs.training_time import record_training_time

__all__ = [
    "CHECKPOINT",
    "WEIGHTS",
    "MemoryRun",
    "RunFolder",
    "current_name",
    "damaged",
    "environment",
    "existing_folder_error",
    "is_damaged",
    "list_runs",
    "record_training_time",
    "unwritable",
    "versions",
    "write_atomic",
    "write_files",
]
