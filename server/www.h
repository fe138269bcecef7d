// SPDX-License-Identifier: Apache-2.0
// The files of the page, embedded as the build made them (www/CMakeLists.txt).
#ifndef DSNET_SERVER_WWW_H
#define DSNET_SERVER_WWW_H

#define WWW_FILES 8

struct www_file {
  const char *name, *type;
  const unsigned char *begin, *end; // empty for a script that could not be built
};

extern const struct www_file www_files[WWW_FILES];

#endif
