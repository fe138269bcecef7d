// SPDX-License-Identifier: Apache-2.0
// The lock is the one mutable global of the library: libhdf5 has process-wide state of its own, and
// an object's lock could not protect it.
#include "io/dyna_lock.h"

#include <hdf5.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void dyna_lock(void) {
  pthread_mutex_lock(&lock);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void dyna_unlock(void) {
  pthread_mutex_unlock(&lock);
}
