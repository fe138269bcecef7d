// SPDX-License-Identifier: Apache-2.0
// The assembler includes the files byte for byte, as in model/builtin.
#include "www.h"

#define EMBED(symbol, file)                                                                        \
  __asm__(".pushsection .rodata\n"                                                                 \
          ".balign 64\n"                                                                           \
          ".globl " #symbol "\n" #symbol ":\n"                                                     \
          ".incbin \"" file "\"\n"                                                                 \
          ".globl " #symbol "_end\n" #symbol "_end:\n"                                             \
          ".byte 0\n"                                                                              \
          ".popsection\n");                                                                        \
  extern const unsigned char symbol[], symbol##_end[]

EMBED(www_index, WWW_DIR "/index.html");
EMBED(www_style, WWW_DIR "/page.css");
EMBED(www_script, WWW_DIR "/page.js");
EMBED(www_worker, WWW_DIR "/worker.js");
EMBED(www_sample, WWW_SAMPLE);
EMBED(www_hop, WWW_DIR "/hop.npz");
EMBED(www_run, WWW_DIR "/run.npz");
EMBED(www_twist, WWW_DIR "/twist.npz");

static const char npz[] = "application/zip";
static const char script[] = "text/javascript; charset=utf-8";

const struct www_file www_files[WWW_FILES] = {
    {"index.html", "text/html; charset=utf-8", www_index, www_index_end},
    {"page.css", "text/css; charset=utf-8", www_style, www_style_end},
    {"page.js", script, www_script, www_script_end},
    {"worker.js", script, www_worker, www_worker_end},
    {"sample.npz", npz, www_sample, www_sample_end},
    {"hop.npz", npz, www_hop, www_hop_end},
    {"run.npz", npz, www_run, www_run_end},
    {"twist.npz", npz, www_twist, www_twist_end},
};
