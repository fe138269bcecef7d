// SPDX-License-Identifier: Apache-2.0
#include "eval/splits.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"

#define FILE_MAX 1048576

enum rule_kind { RULE_SUBJECT, RULE_MOTION, RULE_VALIDATION, RULE_KINDS };
static const char *const rule_words[RULE_KINDS] = {"subject", "motion", "validation"};

struct rule {
  enum rule_kind kind;
  char *pattern; // into text
};

struct splits {
  char *text;
  struct rule *rules;
  size_t count;
};

const char *split_name(enum split split) {
  static const char *const names[SPLIT_COUNT] = {"training", "validation",
                                                 "seen shape, unseen motion",
                                                 "unseen shape, seen motion", "both unseen"};
  return names[split];
}

static int parse_line(struct splits *splits, char *line, const char *name, size_t number,
                      struct dsnet_error *error) {
  static const char blank[] = " \t\r";
  char *save, *word = strtok_r(line, blank, &save);
  if (!word || word[0] == '#')
    return 0;
  char *pattern = strtok_r(NULL, blank, &save), *surplus = strtok_r(NULL, blank, &save);
  for (int kind = 0; kind < RULE_KINDS; kind++) {
    if (strcmp(word, rule_words[kind]) != 0)
      continue;
    if (!pattern || (surplus && surplus[0] != '#'))
      return dsnet_error_set(error, DSNET_EFORMAT, "%s: line %zu: one pattern after \"%s\"", name,
                             number, word);
    splits->rules[splits->count++] = (struct rule){(enum rule_kind)kind, pattern};
    return 0;
  }
  return dsnet_error_set(error, DSNET_EFORMAT,
                         "%s: line %zu: \"%.40s\" is not subject, motion or validation", name,
                         number, word);
}

int splits_parse(struct splits **out, const char *text, const char *name,
                 struct dsnet_error *error) {
  *out = NULL;
  struct splits *splits = calloc(1, sizeof *splits);
  size_t lines = 1, number = 0;
  for (const char *c = text; *c; c++)
    lines += *c == '\n';
  if (splits) {
    splits->text = strdup(text);
    splits->rules = calloc(lines, sizeof *splits->rules);
  }
  if (!splits || !splits->text || !splits->rules) {
    splits_free(splits);
    return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", name);
  }
  int result = 0;
  char *rest = splits->text;
  for (char *line; result == 0 && (line = strsep(&rest, "\n"));)
    result = parse_line(splits, line, name, ++number, error);
  if (result < 0) {
    splits_free(splits);
    return result;
  }
  *out = splits;
  return 0;
}

int splits_load(struct splits **splits, const char *path, struct dsnet_error *error) {
  uint8_t *data;
  size_t size;
  *splits = NULL;
  int result = file_read(path, FILE_MAX, &data, &size, error);
  if (result < 0)
    return result;
  char *text = strndup((const char *)data, size);
  free(data);
  if (!text)
    return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
  result = splits_parse(splits, text, path, error);
  free(text);
  return result;
}

void splits_free(struct splits *splits) {
  if (!splits)
    return;
  free(splits->text);
  free(splits->rules);
  free(splits);
}

static bool matches(const struct splits *splits, enum rule_kind kind, const char *text) {
  for (size_t i = 0; i < splits->count; i++)
    if (splits->rules[i].kind == kind && fnmatch(splits->rules[i].pattern, text, 0) == 0)
      return true;
  return false;
}

enum split splits_of(const struct splits *splits, const char *subject, const char *motion) {
  bool shape = matches(splits, RULE_SUBJECT, subject), clip = matches(splits, RULE_MOTION, motion);
  if (shape || clip)
    return shape && clip ? SPLIT_UNSEEN_BOTH : shape ? SPLIT_UNSEEN_SHAPE : SPLIT_UNSEEN_MOTION;
  char name[512];
  snprintf(name, sizeof name, "%s_%s", subject, motion);
  return matches(splits, RULE_VALIDATION, name) ? SPLIT_VALIDATION : SPLIT_TRAIN;
}
