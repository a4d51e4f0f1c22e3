"""Start the measuring worker somewhere, and lose nothing on the way.

A launcher takes a finished job bundle to a GPU and brings the result bundle back: `local`
(another interpreter), `ssh` (another machine), `slurm` (a cluster). It neither builds bundles
nor reads measurements: the worker and the result path do. Every job is a directory below
`<warehouse>/reruns/jobs/`, so that any later process can go on where a killed one stopped.

- `settings`: one typed setting per launcher, one choice among them
- `job`, `job_directory`: what a job is, and its durable state on disk
- `launcher`: the protocol all launchers keep; `local`, `ssh`, `slurm` (with `slurm_queue`)
- `drive`: submit, follow, enforce the deadline, collect; `reconcile`: repair what was left
- `supervisor`: the stdlib-only program that stands over the worker on the GPU's machine
"""
