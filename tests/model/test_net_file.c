// SPDX-License-Identifier: Apache-2.0
// net/net_file.c and metadata.c: what makes a model file, and how each fault in one is named.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/half.h"
#include "io/safetensors.h"
#include "net/internal.h"

enum { HIDDEN = 16, LATENT = 4, VERTICES = 5, FEATURES = 214, ARRAYS_MAX = 32 };

#define MODEL "model.safetensors"

static int make_folder(void **state) {
  char *folder = strdup("/tmp/dsnet-net-XXXXXX");
  *state = folder;
  return folder && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  unlink(MODEL);
  unlink("again.safetensors");
  int failed = chdir("/") || rmdir(*state);
  free(*state);
  return failed;
}

static struct net_config small_config(void) {
  return (struct net_config){.layers = 2,
                             .hidden = HIDDEN,
                             .latent = LATENT,
                             .vertices = VERTICES,
                             .features = feature_set_find("paper"),
                             .rate = 60};
}

static struct net *new_net(void) {
  struct net_config config = small_config();
  struct net *net;
  config.has_body_hash = true;
  for (size_t i = 0; i < sizeof config.body_hash; i++)
    config.body_hash[i] = (uint8_t)(i * 37);
  assert_int_equal(net_new_random(&net, &config, 11, NULL), 0);
  return net;
}

static char *read_all(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *bytes = malloc(1 << 20);
  assert_non_null(bytes);
  *size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

static void check_same_config(const struct net_config *a, const struct net_config *b) {
  assert_int_equal(a->layers, b->layers);
  assert_int_equal(a->hidden, b->hidden);
  assert_int_equal(a->latent, b->latent);
  assert_int_equal(a->vertices, b->vertices);
  assert_ptr_equal(a->features, b->features);
  assert_true(a->rate == b->rate);
  assert_int_equal(a->trained, b->trained);
  assert_int_equal(a->has_body_hash, b->has_body_hash);
  assert_memory_equal(a->body_hash, b->body_hash, sizeof a->body_hash);
}

static void what_is_saved_is_loaded(void **state) {
  (void)state;
  for (int half = 0; half < 2; half++) {
    struct net *net = new_net(), *loaded;
    struct dsnet_error error = {0};
    assert_int_equal(net_save(net, MODEL, half ? NET_F16 : NET_F32, &error), 0);
    if (net_load(&loaded, MODEL, &error))
      fail_msg("%s", error.text);
    check_same_config(net_config(net), net_config(loaded));
    assert_string_equal(net_provenance(net), net_provenance(loaded));
    for (size_t i = 0; i < net->tensor_count; i++)
      for (size_t v = 0; v < net->tensors[i].count; v++) {
        float value = net->tensors[i].data[v];
        assert_true(loaded->tensors[i].data[v] ==
                    (half ? half_to_float(half_from_float(value)) : value));
      }
    net_free(net);
    net_free(loaded);
  }
}

static void saving_again_gives_the_same_bytes(void **state) {
  (void)state;
  struct net *net = new_net(), *loaded;
  size_t size, size_again;
  assert_int_equal(net_save(net, MODEL, NET_F32, NULL), 0);
  char *bytes = read_all(MODEL, &size);
  assert_int_equal(net_load_memory(&loaded, bytes, size, NULL), 0);
  assert_int_equal(net_save(loaded, "again.safetensors", NET_F32, NULL), 0);
  char *again = read_all("again.safetensors", &size_again);
  assert_int_equal(size, size_again);
  assert_memory_equal(bytes, again, size);
  free(bytes);
  free(again);
  net_free(net);
  net_free(loaded);
}

// A model file to be spoilt: the tensors of a good one, and its metadata.
struct parts {
  struct net *net;
  struct safetensors_array arrays[ARRAYS_MAX];
  size_t count;
  const char *metadata;
};

static void parts_init(struct parts *parts) {
  *parts = (struct parts){.net = new_net()};
  for (size_t i = 0; i < parts->net->tensor_count; i++) {
    const struct net_tensor *t = &parts->net->tensors[i];
    parts->arrays[parts->count++] = (struct safetensors_array){.name = t->name,
                                                               .dimensions = t->dimensions,
                                                               .shape = {t->shape[0], t->shape[1]},
                                                               .data = t->data};
  }
}

static struct safetensors_array *parts_find(struct parts *parts, const char *name) {
  for (size_t i = 0; i < parts->count; i++)
    if (!strcmp(parts->arrays[i].name, name))
      return &parts->arrays[i];
  fail_msg("no %s", name);
  return NULL;
}

static void parts_remove(struct parts *parts, const char *name) {
  struct safetensors_array *array = parts_find(parts, name);
  *array = parts->arrays[--parts->count];
}

static int parts_load(const struct parts *parts, struct net **net, struct dsnet_error *error) {
  const struct safetensors_text text = {"dsnet", parts->metadata};
  if (safetensors_write(MODEL, SAFETENSORS_F32, parts->arrays, parts->count, &text,
                        parts->metadata ? 1 : 0, error))
    fail_msg("%s", error->text);
  return net_load(net, MODEL, error);
}

static void check_refused(struct parts *parts, int code, const char *mentions) {
  struct dsnet_error error = {0};
  struct net *net;
  int got = parts_load(parts, &net, &error);
  if (got != code || !strstr(error.text, mentions) || !strstr(error.text, MODEL ": "))
    fail_msg("code %d, not %d; \"%s\" does not mention %s", got, code, error.text, mentions);
  net_free(parts->net);
}

static void a_file_without_metadata_is_taken_as_the_papers(void **state) {
  (void)state;
  struct parts parts;
  struct net *net;
  struct dsnet_error error = {0};
  parts_init(&parts);
  parts_remove(&parts, "features.mean");
  parts_remove(&parts, "features.scale");
  parts.arrays[parts.count++] = (struct safetensors_array){
      .name = "optimizer.step", .dimensions = 0, .data = parts.arrays[0].data};
  if (parts_load(&parts, &net, &error))
    fail_msg("%s", error.text);
  assert_string_equal(net_config(net)->features->name, "paper");
  assert_true(net_config(net)->rate == 60);
  assert_false(net_config(net)->trained);
  assert_false(net_config(net)->has_body_hash);
  assert_string_equal(net_provenance(net), "{}");
  for (size_t i = 0; i < FEATURES; i++)
    assert_true(net->mean[i] == 0 && net->scale[i] == 1);
  net_free(net);
  net_free(parts.net);
}

static void missing_tensors_are_named(void **state) {
  (void)state;
  static const char *const names[] = {"lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l1",
                                      "lstm.bias_hh_l0",   "linear.weight",     "linear.bias",
                                      "decoder.weight",    "decoder.bias"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct parts parts;
    parts_init(&parts);
    parts_remove(&parts, names[i]);
    check_refused(&parts, DSNET_EMISSING, names[i]);
  }
}

// A layer that is only partly there must not be left out in silence.
static void a_surplus_tensor_of_ours_is_refused(void **state) {
  (void)state;
  static const char *const names[] = {"lstm.weight_ih_l0_reverse", "lstm.weight_ih_l2",
                                      "linear.2.weight", "decoder.0.weight", "features.other"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct parts parts;
    parts_init(&parts);
    parts.arrays[parts.count] = parts.arrays[0];
    parts.arrays[parts.count++].name = names[i];
    check_refused(&parts, DSNET_EUNSUPPORTED, names[i]);
  }
}

static void wrong_shapes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t dimensions, shape[2];
    int code;
    const char *mentions;
  } cases[] = {
      {"lstm.weight_ih_l0", 2, {4 * HIDDEN, FEATURES - 1}, DSNET_EMISMATCH, "lstm.weight_ih_l0"},
      {"lstm.weight_ih_l1", 2, {3 * HIDDEN, HIDDEN}, DSNET_EMISMATCH, "lstm.weight_ih_l1"},
      {"lstm.weight_hh_l1", 2, {4 * HIDDEN, HIDDEN - 1}, DSNET_EMISMATCH, "lstm.weight_hh_l1"},
      {"lstm.weight_hh_l0", 1, {4 * HIDDEN}, DSNET_EMISMATCH, "lstm.weight_hh_l0"},
      {"lstm.weight_hh_l0", 2, {4 * HIDDEN, 8}, DSNET_ELIMIT, "hidden"},
      {"lstm.bias_ih_l0", 1, {HIDDEN}, DSNET_EMISMATCH, "lstm.bias_ih_l0"},
      {"linear.weight", 2, {0, HIDDEN}, DSNET_ELIMIT, "latents"},
      {"linear.weight", 2, {LATENT, HIDDEN - 1}, DSNET_EMISMATCH, "linear.weight"},
      {"linear.bias", 2, {LATENT, 1}, DSNET_EMISMATCH, "linear.bias"},
      {"decoder.weight", 2, {3 * VERTICES - 1, LATENT}, DSNET_EMISMATCH, "three a vertex"},
      {"decoder.weight", 2, {0, LATENT}, DSNET_ELIMIT, "vertices"},
      {"decoder.weight", 2, {3 * VERTICES, LATENT - 1}, DSNET_EMISMATCH, "decoder.weight"},
      {"decoder.bias", 1, {3 * VERTICES - 3}, DSNET_EMISMATCH, "decoder.bias"},
      {"features.mean", 1, {FEATURES - 10}, DSNET_EMISMATCH, "features.mean"},
      {"features.scale", 2, {1, FEATURES}, DSNET_EMISMATCH, "features.scale"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct parts parts;
    parts_init(&parts);
    struct safetensors_array *array = parts_find(&parts, cases[i].name);
    array->dimensions = cases[i].dimensions;
    memcpy(array->shape, cases[i].shape, sizeof cases[i].shape);
    check_refused(&parts, cases[i].code, cases[i].mentions);
  }
}

static void five_layers_are_refused(void **state) {
  (void)state;
  static char names[12][32];
  static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
  struct parts parts;
  parts_init(&parts);
  for (size_t i = 0; i < 12; i++) { // layers 2, 3 and 4 like layer 1
    snprintf(names[i], sizeof names[i], "lstm.%s_l%zu", kinds[i % 4], 2 + i / 4);
    parts.arrays[parts.count] = parts.arrays[4 + i % 4];
    parts.arrays[parts.count++].name = names[i];
  }
  check_refused(&parts, DSNET_ELIMIT, "5 layers");
}

static void values_that_cannot_be_used_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *name;
    float value;
    const char *mentions;
  } cases[] = {
      // Sums of these could overflow, though each is finite.
      {"lstm.weight_ih_l0", 1e30f, "lstm.weight_ih_l0"},
      {"lstm.weight_hh_l1", -2e38f, "lstm.weight_ih_l1"},
      {"lstm.bias_hh_l0", 2e38f, "lstm.weight_ih_l0"},
      {"linear.weight", 2e38f, "linear.weight"},
      {"decoder.weight", 2e38f, "decoder.weight"},
      {"decoder.bias", -2e38f, "decoder.weight"},
      {"features.scale", 1e30f, "features.scale"},
      {"features.mean", 2e38f, "features.scale"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct parts parts;
    parts_init(&parts);
    net_tensor_find(parts.net, cases[i].name)->data[2] = cases[i].value;
    check_refused(&parts, DSNET_EVALUE, cases[i].mentions);
  }
}

static void weights_that_are_not_finite_are_refused(void **state) {
  (void)state;
  static const float bad = NAN;
  struct dsnet_error error = {0};
  struct parts parts;
  struct net *net;
  size_t size;
  parts_init(&parts);
  assert_int_equal(net_save(parts.net, MODEL, NET_F32, NULL), 0);
  char *bytes = read_all(MODEL, &size);
  memcpy(bytes + size - 4, &bad, sizeof bad); // the last value is the features' scale
  assert_int_equal(net_load_memory(&net, bytes, size, &error), DSNET_EVALUE);
  assert_non_null(strstr(error.text, "\"features.scale\": value 213"));
  free(bytes);
  net_free(parts.net);
}

static void metadata_is_checked(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int code;
    const char *mentions;
  } cases[] = {
      {"", DSNET_EFORMAT, "JSON"},
      {"[]", DSNET_EFORMAT, "JSON"},
      {"{\"format\":1,\"format\":1}", DSNET_EFORMAT, "JSON"},
      {"{}", DSNET_EUNSUPPORTED, "format"},
      {"{\"format\":2}", DSNET_EUNSUPPORTED, "format"},
      {"{\"format\":1,\"features\":\"nonsense\"}", DSNET_EUNSUPPORTED, "nonsense"},
      {"{\"format\":1,\"features\":1}", DSNET_EFORMAT, "features"},
      {"{\"format\":1,\"rate\":0}", DSNET_EVALUE, "rate"},
      {"{\"format\":1,\"rate\":\"60\"}", DSNET_EVALUE, "rate"},
      {"{\"format\":1,\"rate\":1e9}", DSNET_EVALUE, "rate"},
      {"{\"format\":1,\"decoder\":\"deep\"}", DSNET_EUNSUPPORTED, "decoder"},
      {"{\"format\":1,\"trained\":1}", DSNET_EFORMAT, "trained"},
      {"{\"format\":1,\"body\":\"00\"}", DSNET_EFORMAT, "body"},
      {"{\"format\":1,\"body\":7}", DSNET_EFORMAT, "body"},
      {"{\"format\":1,\"body\":"
       "\"zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"}",
       DSNET_EFORMAT, "body"},
      {"{\"format\":1,\"provenance\":\"me\"}", DSNET_EFORMAT, "provenance"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct parts parts;
    parts_init(&parts);
    parts.metadata = cases[i].text;
    check_refused(&parts, cases[i].code, cases[i].mentions);
  }
}

static void metadata_is_read(void **state) {
  (void)state;
  struct parts parts;
  struct net *net;
  parts_init(&parts);
  parts.metadata = "{\"format\":1,\"features\":\"paper\",\"rate\":30,\"decoder\":\"linear\","
                   "\"trained\":true,\"body\":"
                   "\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\","
                   "\"provenance\":{\"seed\":1},\"more\":[]}";
  assert_int_equal(parts_load(&parts, &net, NULL), 0);
  assert_true(net_config(net)->trained);
  assert_true(net_config(net)->rate == 30);
  assert_true(net_config(net)->has_body_hash);
  assert_int_equal(net_config(net)->body_hash[31], 0xff);
  assert_string_equal(net_provenance(net), "{\"seed\":1}");
  net_free(net);
  net_free(parts.net);
}

static void hash_of(const struct net *net, uint8_t hash[NET_HASH_SIZE]) {
  memset(hash, 0, NET_HASH_SIZE);
  net_hash(net, hash);
}

static void the_hash_is_of_the_weights_and_not_of_the_file(void **state) {
  (void)state;
  struct net *net = new_net(), *half, *again;
  uint8_t first[NET_HASH_SIZE], second[NET_HASH_SIZE];
  assert_int_equal(net_save(net, MODEL, NET_F16, NULL), 0);
  assert_int_equal(net_load(&half, MODEL, NULL), 0);
  assert_int_equal(net_save(half, MODEL, NET_F32, NULL), 0);
  assert_int_equal(net_load(&again, MODEL, NULL), 0);
  hash_of(half, first);
  hash_of(again, second);
  assert_memory_equal(first, second, NET_HASH_SIZE);
  hash_of(net, second); // not rounded to halves
  assert_memory_not_equal(first, second, NET_HASH_SIZE);
  net_free(net);
  net_free(half);
  net_free(again);
}

static void the_hash_changes_with_whatever_changes_a_result(void **state) {
  (void)state;
  struct net *net = new_net();
  uint8_t plain[NET_HASH_SIZE], changed[NET_HASH_SIZE];
  hash_of(net, plain);
  for (size_t i = 0; i < net->tensor_count; i++) {
    float *last = &net->tensors[i].data[net->tensors[i].count - 1], kept = *last;
    *last += 1;
    hash_of(net, changed);
    assert_memory_not_equal(plain, changed, NET_HASH_SIZE);
    *last = kept;
  }
  net->config.rate = 30;
  hash_of(net, changed);
  assert_memory_not_equal(plain, changed, NET_HASH_SIZE);
  net->config.rate = 60;
  net->config.features = feature_set_find("inertial");
  hash_of(net, changed);
  assert_memory_not_equal(plain, changed, NET_HASH_SIZE);
  net->config.features = feature_set_find("paper");
  hash_of(net, changed);
  assert_memory_equal(plain, changed, NET_HASH_SIZE);
  net_free(net);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_is_saved_is_loaded),
      IN_FOLDER(saving_again_gives_the_same_bytes),
      IN_FOLDER(a_file_without_metadata_is_taken_as_the_papers),
      IN_FOLDER(missing_tensors_are_named),
      IN_FOLDER(a_surplus_tensor_of_ours_is_refused),
      IN_FOLDER(wrong_shapes_are_named),
      IN_FOLDER(five_layers_are_refused),
      IN_FOLDER(values_that_cannot_be_used_are_refused),
      IN_FOLDER(weights_that_are_not_finite_are_refused),
      IN_FOLDER(metadata_is_checked),
      IN_FOLDER(metadata_is_read),
      IN_FOLDER(the_hash_is_of_the_weights_and_not_of_the_file),
      IN_FOLDER(the_hash_changes_with_whatever_changes_a_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
