// SPDX-License-Identifier: Apache-2.0
// Internal to io/dyna*.c: the one lock under which all calls of libhdf5 are made.
#ifndef DSNET_IO_DYNA_LOCK_H
#define DSNET_IO_DYNA_LOCK_H

// Also silences the error stack that libhdf5 would print to standard error.
void dyna_lock(void);
void dyna_unlock(void);

#endif
