// SPDX-License-Identifier: Apache-2.0
#include "asset.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "negotiate.h"

#define TAG_SIZE   crypto_generichash_BYTES_MIN // bytes of hash in an entity tag
#define BLOCK      65536
#define GZIP_BITS  (15 + 16) // zlib's window, and its way of asking for gzip's format
#define GZIP_LEVEL 6
#define MEMORY     8

static int pack(struct asset *asset, struct dsnet_error *error) {
  z_stream stream = {0};
  if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_BITS, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  size_t room = deflateBound(&stream, asset->plain.size);
  asset->packed = malloc(room);
  if (!asset->packed) {
    deflateEnd(&stream);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  stream.next_in = (Bytef *)(uintptr_t)asset->plain.bytes; // zlib's own type has no const
  stream.avail_in = (uInt)asset->plain.size;
  stream.next_out = asset->packed;
  stream.avail_out = (uInt)room;
  int status = deflate(&stream, Z_FINISH);
  asset->gzip = (struct asset_form){.bytes = asset->packed, .size = stream.total_out};
  deflateEnd(&stream);
  if (status != Z_STREAM_END)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (asset->gzip.size > asset->plain.size - asset->plain.size / 20)
    asset->gzip.size = 0;
  return 0;
}

int asset_init(struct asset *asset, const char *type, const void *bytes, size_t size, void *owned,
               struct dsnet_error *error) {
  *asset = (struct asset){.type = type, .plain = {.bytes = bytes, .size = size}, .owned = owned};
  uint8_t hash[TAG_SIZE];
  char hex[2 * TAG_SIZE + 1];
  int result = pack(asset, error);
  if (result < 0) {
    asset_deinit(asset);
    return result;
  }
  crypto_generichash(hash, sizeof hash, bytes, size, NULL, 0);
  sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
  snprintf(asset->plain.etag, sizeof asset->plain.etag, "\"%s\"", hex);
  snprintf(asset->gzip.etag, sizeof asset->gzip.etag, "\"%s-gzip\"", hex);
  return 0;
}

void asset_deinit(struct asset *asset) {
  free(asset->owned);
  free(asset->packed);
  *asset = (struct asset){0};
}

static ssize_t read_form(void *user, uint64_t offset, char *data, size_t size) {
  const struct asset_form *form = user;
  size_t rest = form->size - (size_t)offset;
  if (size > rest)
    size = rest;
  memcpy(data, (const char *)form->bytes + offset, size);
  return (ssize_t)size;
}

void asset_answer(const struct asset *asset, const struct request *request, struct answer *answer) {
  bool gzip = asset->gzip.size && negotiate_takes_gzip(request_header(request, "Accept-Encoding"));
  const struct asset_form *form = gzip ? &asset->gzip : &asset->plain;
  // The reader's own type has no const; it only reads.
  const struct answer_source source = {.read = read_form, .user = (void *)(uintptr_t)form};
  answer_stream(answer, asset->type, form->size, form->etag, &source, BLOCK);
  answer_header(answer, "Vary", "Accept-Encoding");
  if (gzip)
    answer_header(answer, "Content-Encoding", "gzip");
}
