// SPDX-License-Identifier: Apache-2.0
// The embedded files. The assembler includes them byte for byte, so that no generated source stands
// between a file and the binary.
#include "builtin/builtin.h"

#define EMBED(symbol, file)                                                                        \
  __asm__(".pushsection .rodata\n"                                                                 \
          ".balign 64\n"                                                                           \
          ".globl " #symbol "\n" #symbol ":\n"                                                     \
          ".incbin \"" BUILTIN_DIR "/" file "\"\n"                                                 \
          ".globl " #symbol "_end\n" #symbol "_end:\n"                                             \
          ".byte 0\n"                                                                              \
          ".popsection\n");                                                                        \
  extern const unsigned char symbol[], symbol##_end[]

EMBED(builtin_body, "body.npz");
EMBED(builtin_sample, "sample.npz");
EMBED(builtin_model, "model.safetensors");

int builtin_body_load(struct body **body, struct dsnet_error *error) {
  return body_load_memory(body, builtin_body, (size_t)(builtin_body_end - builtin_body), error);
}

int builtin_clip_load(struct clip **clip, struct dsnet_error *error) {
  return clip_load_memory(clip, builtin_sample, (size_t)(builtin_sample_end - builtin_sample),
                          error);
}

int builtin_net_load(struct net **net, struct dsnet_error *error) {
  return net_load_memory(net, builtin_model, (size_t)(builtin_model_end - builtin_model), error);
}
