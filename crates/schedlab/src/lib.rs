//! The public face: machines, kernels, scenarios, simulations, comparisons.
