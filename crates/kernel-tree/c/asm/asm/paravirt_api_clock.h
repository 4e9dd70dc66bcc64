#include <asm/paravirt.h>
