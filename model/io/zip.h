// SPDX-License-Identifier: Apache-2.0
// Reading zip archives (PKWARE APPNOTE 6.3.x), inside the io folder: the directory, checked whole
// when it is opened, and one entry at a time as a stream of bytes. What holds after zip_open:
//
//   end of central directory   found, its comment reaches exactly to the end of the archive, one
//   disk zip64 end and locator      read where the 32-bit record says so every directory entry
//   inside the directory; its local header is where it says, has the same
//                              name, method and (without a data descriptor) sizes and CRC
//   every entry's bytes        in front of the directory and overlapping no other entry's, so that
//                              a small archive cannot name the same bytes many times
//   names                      unique, without NUL; they are keys and never used as file names
//
// Whether an entry's method is one that can be read is asked when the entry is opened.
#ifndef DSNET_IO_ZIP_H
#define DSNET_IO_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ZIP_ENTRIES_MAX   65536
#define ZIP_DIRECTORY_MAX (64u << 20) // bytes of the central directory

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_entry {
  char *name;
  size_t name_length;
  uint16_t method;
  bool encrypted;
  uint32_t crc;
  uint64_t compressed, size; // bytes in the archive, bytes when read
  uint64_t header;           // offset of the local header
  uint64_t data;             // offset of the compressed bytes
};

// Where bytes come from: a file, or memory when `memory` is not NULL.
struct zip_source {
  int descriptor;
  const uint8_t *memory;
  uint64_t size;
};

struct zip {
  struct zip_source source;
  struct zip_entry *entries; // in directory order
  size_t count;
};

// Bytes of the source; a range that is not inside it is DSNET_EFORMAT.
int zip_source_read(const struct zip_source *source, uint64_t offset, void *data, size_t size,
                    struct dsnet_error *error);

// Reads and checks the directory. The source stays the caller's and must outlive the zip.
int zip_open(struct zip *zip, struct zip_source source, struct dsnet_error *error);
void zip_deinit(struct zip *zip);

// The bytes of one entry, in order.
struct zip_stream;

// Refuses encryption, unknown methods, and a size that the compressed bytes cannot hold (deflate
// expands at most 1032 times), so that a caller may trust `size` to be in proportion to the
// archive.
int zip_stream_open(struct zip_stream **stream, const struct zip *zip,
                    const struct zip_entry *entry, struct dsnet_error *error);
// Exactly `size` bytes; an entry that ends before them is DSNET_EFORMAT. Nothing beyond what is
// asked for is inflated.
int zip_stream_read(struct zip_stream *stream, void *data, size_t size, struct dsnet_error *error);
// After the last byte: the compressed data ends here too, and the CRC is right.
int zip_stream_finish(struct zip_stream *stream, struct dsnet_error *error);
void zip_stream_close(struct zip_stream *stream);

#endif
