from bough.inference.kernels.jit import kernel as kernel
