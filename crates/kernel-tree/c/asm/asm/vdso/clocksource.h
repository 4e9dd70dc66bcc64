/* Nothing: no clock source of this machine is read in user space. */
