"""Every compiled kernel, one file per subject. Kernels take plain arrays, with the shape beside each argument."""
