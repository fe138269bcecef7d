// SPDX-License-Identifier: Apache-2.0
// An npz archive that is never in one place: small arrays, and at its end one large array that is
// made while it is sent. Every byte's place is known beforehand, so that the whole can be asked for
// in parts: prefix, then the bytes of the large array, then the tail, which needs their CRC.
//
// The large array is stored, in zip64 form whatever its size, with a data descriptor behind it
// (PKWARE APPNOTE 6.3.x, sections 4.3.9 and 4.5.3). Plain data; one thread at a time.
#ifndef DSNET_IO_NPZ_LAYOUT_H
#define DSNET_IO_NPZ_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NPZ_LAYOUT_PREFIX_MAX 2048
#define NPZ_LAYOUT_ARRAYS_MAX 4
#define NPZ_LAYOUT_NAME_MAX   32
#define NPZ_LAYOUT_TAIL_MAX   1024

struct npz_layout {
  uint8_t prefix[NPZ_LAYOUT_PREFIX_MAX];
  size_t prefix_size;
  uint64_t array_size; // bytes of the large array, without its npy header
  size_t tail_size;
  size_t count;
  struct npz_layout_entry {
    char name[NPZ_LAYOUT_NAME_MAX];
    uint32_t crc; // of the large one: of its npy header
    uint64_t size, offset;
  } entries[NPZ_LAYOUT_ARRAYS_MAX]; // the large one is the last
};

// Starts from {0}. dtype, shape and data are as those of npz_writer_add. DSNET_ELIMIT when the
// small arrays do not fit, DSNET_EFORMAT for a shape whose bytes cannot be counted.
int npz_layout_add(struct npz_layout *layout, const char *name, const char *dtype,
                   size_t dimensions, const size_t *shape, const void *data,
                   struct dsnet_error *error);
// The large array, which comes last.
int npz_layout_end(struct npz_layout *layout, const char *name, const char *dtype,
                   size_t dimensions, const size_t *shape, struct dsnet_error *error);

// The CRC-32 that npz_layout_tail needs: npz_layout_crc of the large array's bytes in order, the
// first time with what npz_layout_crc_begin gives.
uint32_t npz_layout_crc_begin(const struct npz_layout *layout);
uint32_t npz_layout_crc(uint32_t crc, const void *data, size_t size);
// The tail, layout->tail_size bytes.
void npz_layout_tail(const struct npz_layout *layout, uint32_t crc,
                     uint8_t tail[NPZ_LAYOUT_TAIL_MAX]);

#endif
