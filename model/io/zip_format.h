// SPDX-License-Identifier: Apache-2.0
// The numbers of the zip format (PKWARE APPNOTE 6.3.x, sections 4.3 and 4.5) that reading and
// writing share.
#ifndef DSNET_IO_ZIP_FORMAT_H
#define DSNET_IO_ZIP_FORMAT_H

#include <stdint.h>

#define ZIP_LOCAL_SIGNATURE     0x04034b50u
#define ZIP_CENTRAL_SIGNATURE   0x02014b50u
#define ZIP_END_SIGNATURE       0x06054b50u
#define ZIP_END64_SIGNATURE     0x06064b50u
#define ZIP_LOCATOR64_SIGNATURE 0x07064b50u

// Bytes of each record without its variable parts.
#define ZIP_LOCAL_SIZE     30u
#define ZIP_CENTRAL_SIZE   46u
#define ZIP_END_SIZE       22u
#define ZIP_END64_SIZE     56u
#define ZIP_LOCATOR64_SIZE 20u

#define ZIP_FLAG_ENCRYPTED       0x0001u
#define ZIP_FLAG_DATA_DESCRIPTOR 0x0008u
#define ZIP_FLAG_STRONG          0x0040u
#define ZIP_FLAG_UTF8            0x0800u
#define ZIP_FLAG_MASKED          0x2000u
#define ZIP_EXTRA_ZIP64          0x0001u

static inline uint16_t zip_get16(const uint8_t *p) {
  return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t zip_get32(const uint8_t *p) {
  return zip_get16(p) | (uint32_t)zip_get16(p + 2) << 16;
}

static inline uint64_t zip_get64(const uint8_t *p) {
  return zip_get32(p) | (uint64_t)zip_get32(p + 4) << 32;
}

// Each returns the byte after what it wrote.
static inline uint8_t *zip_put16(uint8_t *p, uint32_t value) {
  p[0] = (uint8_t)value;
  p[1] = (uint8_t)(value >> 8);
  return p + 2;
}

static inline uint8_t *zip_put32(uint8_t *p, uint32_t value) {
  return zip_put16(zip_put16(p, value & 0xffff), value >> 16);
}

static inline uint8_t *zip_put64(uint8_t *p, uint64_t value) {
  return zip_put32(zip_put32(p, (uint32_t)value), (uint32_t)(value >> 32));
}

#endif
