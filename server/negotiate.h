// SPDX-License-Identifier: Apache-2.0
// What the header fields of HTTP semantics (RFC 9110) say about types, versions and parts of a
// document. Plain functions of text.
#ifndef DSNET_SERVER_NEGOTIATE_H
#define DSNET_SERVER_NEGOTIATE_H

#include <stdbool.h>
#include <stdint.h>

// Whether an Accept field (NULL: none) takes a media type. Parameters of the type other than q do
// not matter; the most specific range decides, and q=0 refuses.
bool negotiate_accepts(const char *accept, const char *type);

// Whether an Accept field gives `type` more weight than `other`: browsers name text/html.
bool negotiate_prefers(const char *accept, const char *type, const char *other);

// Whether an Accept-Encoding field (NULL: none) takes gzip.
bool negotiate_takes_gzip(const char *accept_encoding);

// Whether a Content-Type field names one of the space-separated media types, whatever its
// parameters.
bool negotiate_is_type(const char *content_type, const char *types);

// Whether an If-None-Match field (NULL: none) names this entity tag, by weak comparison.
bool negotiate_matches(const char *if_none_match, const char *etag);

enum negotiate_part { NEGOTIATE_WHOLE, NEGOTIATE_PART, NEGOTIATE_NO_PART };

// What a Range field (NULL: none) asks of a document of `size` bytes: one range of bytes gives
// NEGOTIATE_PART and its first and last byte, one without a byte in the document NEGOTIATE_NO_PART.
// Several ranges, other units and malformed fields are ignored, as the standard allows: the whole.
// An If-Range field (NULL: none) that does not name the document's entity tag also asks for the
// whole.
enum negotiate_part negotiate_range(const char *range, const char *if_range, const char *etag,
                                    uint64_t size, uint64_t *first, uint64_t *last);

#endif
