// SPDX-License-Identifier: Apache-2.0
#include "documents.h"

#include <stdlib.h>
#include <string.h>

#define EMBED(symbol, file)                                                                        \
  __asm__(".pushsection .rodata\n"                                                                 \
          ".globl " #symbol "\n" #symbol ":\n"                                                     \
          ".incbin \"" DOCUMENTS_DIR "/" file "\"\n"                                               \
          ".globl " #symbol "_end\n" #symbol "_end:\n"                                             \
          ".byte 0\n"                                                                              \
          ".popsection\n");                                                                        \
  extern const char symbol[], symbol##_end[]

EMBED(document_openapi, "openapi.json");
EMBED(document_asyncapi, "asyncapi.yaml");

static void answer_copy(struct answer *answer, const char *type, const char *text, size_t size) {
  char *copy = malloc(size);
  if (copy)
    memcpy(copy, text, size);
  answer_bytes(answer, 200, type, copy, size);
}

void document_answer_openapi(struct request *request, struct answer *answer) {
  (void)request;
  answer_copy(answer, "application/json", document_openapi,
              (size_t)(document_openapi_end - document_openapi));
}

void document_answer_asyncapi(struct request *request, struct answer *answer) {
  (void)request;
  answer_copy(answer, "application/yaml", document_asyncapi,
              (size_t)(document_asyncapi_end - document_asyncapi));
}
