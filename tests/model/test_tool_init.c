// SPDX-License-Identifier: Apache-2.0
// dsnet init, as a command: the file it writes, and what it says.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "builtin/builtin.h"

// Runs dsnet with these arguments in the test's folder; its exit status, and what it prints.
static int run(const char *arguments, char *text, size_t size) {
  char line[512];
  snprintf(line, sizeof line, "'%s' %s 2>&1", DSNET_TOOL, arguments);
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  size_t used = fread(text, 1, size - 1, pipe);
  text[used] = 0;
  int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int make_folder(void **state) {
  char *folder = strdup("/tmp/dsnet-init-XXXXXX");
  *state = folder;
  return folder && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  unlink("a.safetensors");
  unlink("b.safetensors");
  int failed = chdir("/") || rmdir(*state);
  free(*state);
  return failed;
}

static void the_default_is_for_the_built_in_body(void **state) {
  (void)state;
  char text[4096];
  struct dsnet_error error = {0};
  struct net *net = NULL, *builtin = NULL;
  assert_int_equal(run("init -o a.safetensors", text, sizeof text), 0);
  assert_non_null(strstr(text, "means nothing"));
  if (net_load(&net, "a.safetensors", &error) || builtin_net_load(&builtin, &error))
    fail_msg("%s", error.text);
  const struct net_config *config = net_config(net);
  assert_int_equal(config->layers, 2);
  assert_int_equal(config->hidden, 256);
  assert_int_equal(config->latent, 64);
  assert_false(config->trained);
  assert_true(config->has_body_hash);
  assert_memory_equal(config->body_hash, net_config(builtin)->body_hash, 32);
  assert_int_equal(config->vertices, net_config(builtin)->vertices);
  net_free(net);
  net_free(builtin);
}

static void sizes_and_precision_are_as_asked(void **state) {
  (void)state;
  char text[4096];
  struct net *net;
  assert_int_equal(run("init -o a.safetensors --vertices 7 --layers 3 --hidden 20 --latent 5 --f16",
                       text, sizeof text),
                   0);
  assert_non_null(strstr(text, "f16"));
  assert_int_equal(net_load(&net, "a.safetensors", NULL), 0);
  assert_int_equal(net_config(net)->vertices, 7);
  assert_int_equal(net_config(net)->layers, 3);
  assert_int_equal(net_config(net)->hidden, 20);
  assert_int_equal(net_config(net)->latent, 5);
  assert_false(net_config(net)->has_body_hash);
  net_free(net);
}

static void the_seed_decides(void **state) {
  (void)state;
  char text[4096];
  assert_int_equal(run("init -o a.safetensors --vertices 7 --seed 5", text, sizeof text), 0);
  assert_int_equal(run("init -o b.safetensors --vertices 7 --seed 5", text, sizeof text), 0);
  assert_int_equal(system("cmp -s a.safetensors b.safetensors"), 0);
  assert_int_equal(run("init -o b.safetensors --vertices 7 --seed 6", text, sizeof text), 0);
  assert_int_not_equal(system("cmp -s a.safetensors b.safetensors"), 0);
}

static void wrong_usage_writes_nothing(void **state) {
  (void)state;
  char text[4096];
  assert_int_equal(run("init", text, sizeof text), 2);
  assert_non_null(strstr(text, "-o FILE"));
  assert_int_equal(run("init -o a.safetensors --hidden 8", text, sizeof text), 2);
  assert_int_equal(run("init -o a.safetensors --vertices 3 --body x", text, sizeof text), 2);
  assert_int_equal(run("init -o a.safetensors --body nowhere.npz", text, sizeof text), 1);
  assert_non_null(strstr(text, "nowhere.npz"));
  assert_int_equal(run("init -o nowhere/a.safetensors --vertices 3", text, sizeof text), 1);
  assert_int_equal(access("a.safetensors", F_OK), -1);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(the_default_is_for_the_built_in_body),
      IN_FOLDER(sizes_and_precision_are_as_asked),
      IN_FOLDER(the_seed_decides),
      IN_FOLDER(wrong_usage_writes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
