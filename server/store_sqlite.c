// SPDX-License-Identifier: Apache-2.0
// The store in an SQLite database, in write-ahead-log mode: readers never wait for a writer, and a
// commit is on the disk when it returns. One connection reads and one writes, each under a lock.
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store.h"

#define SCHEMA_VERSION 1

static const char schema[] = "CREATE TABLE jobs ("
                             " number INTEGER PRIMARY KEY AUTOINCREMENT,"
                             " id TEXT NOT NULL UNIQUE,"
                             " key TEXT UNIQUE,"
                             " state INTEGER NOT NULL,"
                             " clip INTEGER NOT NULL,"
                             " model TEXT NOT NULL,"
                             " betas BLOB,"
                             " fingerprint BLOB NOT NULL,"
                             " created REAL NOT NULL,"
                             " started REAL NOT NULL DEFAULT 0,"
                             " finished REAL NOT NULL DEFAULT 0,"
                             " frames INTEGER NOT NULL DEFAULT 0,"
                             " frames_done INTEGER NOT NULL DEFAULT 0,"
                             " attempts INTEGER NOT NULL DEFAULT 0,"
                             " error TEXT NOT NULL DEFAULT '',"
                             " owner TEXT) STRICT;"
                             "CREATE INDEX jobs_by_state ON jobs (state, number);"
                             "PRAGMA user_version = 1;";

#define COLUMNS                                                                                    \
  "number, id, state, clip, model, betas, fingerprint, created, started, finished, frames, "       \
  "frames_done, attempts, error"

// name, the connection it runs on, text
#define STATEMENTS(X)                                                                              \
  X(PUT, writer,                                                                                   \
    "INSERT INTO jobs (id, key, state, clip, model, betas, fingerprint, created) "                 \
    "VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (key) DO NOTHING RETURNING number")        \
  X(BY_KEY, writer, "SELECT " COLUMNS " FROM jobs WHERE key = ?1")                                 \
  X(BY_ID, reader, "SELECT " COLUMNS " FROM jobs WHERE id = ?1")                                   \
  X(LIST, reader,                                                                                  \
    "SELECT " COLUMNS " FROM jobs WHERE number > ?1 AND (?2 = 5 OR state = ?2) "                   \
    "ORDER BY number LIMIT ?3")                                                                    \
  X(EXPIRED, reader,                                                                               \
    "SELECT " COLUMNS " FROM jobs WHERE state NOT IN (0, 1) AND finished < ?1 LIMIT ?2")           \
  X(WAITING, reader, "SELECT count(*) FROM jobs WHERE state IN (0, 1)")                            \
  X(CLAIM, writer,                                                                                 \
    "UPDATE jobs SET state = 1, owner = ?1, attempts = attempts + 1, started = ?2, "               \
    "frames_done = 0 WHERE number = (SELECT min(number) FROM jobs WHERE state = 0) "               \
    "RETURNING " COLUMNS)                                                                          \
  X(PROGRESS, writer,                                                                              \
    "UPDATE jobs SET frames = ?4, frames_done = ?5 "                                               \
    "WHERE id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 1")                                \
  X(FINISH, writer,                                                                                \
    "UPDATE jobs SET state = ?4, frames = ?5, frames_done = ?6, finished = ?7, error = ?8, "       \
    "owner = NULL WHERE id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 1")                   \
  X(RELEASE, writer,                                                                               \
    "UPDATE jobs SET state = 0, started = 0, frames_done = 0, owner = NULL "                       \
    "WHERE id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 1")                                \
  X(CANCEL, writer,                                                                                \
    "UPDATE jobs SET state = 4, finished = ?2, owner = NULL WHERE id = ?1 AND state IN (0, 1)")    \
  X(SEEN, writer, "SELECT " COLUMNS " FROM jobs WHERE id = ?1")                                    \
  X(REMOVE, writer, "DELETE FROM jobs WHERE id = ?1 AND state NOT IN (0, 1)")

enum statement {
#define X(name, connection, text) STATEMENT_##name,
  STATEMENTS(X)
#undef X
      STATEMENT_COUNT
};

// One connection, and who uses it.
struct connection {
  pthread_mutex_t lock;
  sqlite3 *database;
};

struct sqlite_store {
  struct store base;
  int folder_lock; // descriptor
  struct connection reader, writer;
  sqlite3_stmt *statements[STATEMENT_COUNT];
};

static struct sqlite_store *self(struct store *store) {
  return (struct sqlite_store *)(void *)store;
}

// Results ----------------------------------------------------------------------------------------

static int fail(sqlite3 *database, const char *what, struct dsnet_error *error) {
  int code = sqlite3_extended_errcode(database), primary = code & 0xff;
  // A write that the file system refuses for size (a quota, a limit of the process) ends like this.
  bool full = primary == SQLITE_FULL || code == SQLITE_IOERR_WRITE;
  dsnet_error_record(error, DSNET_EIO, "%s: %s (SQLite %d)", what, sqlite3_errmsg(database), code);
  return full ? STORE_FULL : STORE_BROKEN;
}

static void copy_text(char *to, size_t size, sqlite3_stmt *statement, int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  snprintf(to, size, "%s", text ? (const char *)text : "");
}

static void copy_blob(void *to, size_t size, sqlite3_stmt *statement, int column) {
  const void *blob = sqlite3_column_blob(statement, column);
  if (blob && (size_t)sqlite3_column_bytes(statement, column) == size)
    memcpy(to, blob, size);
}

static void read_job(sqlite3_stmt *row, struct job *job) {
  *job = (struct job){.number = (uint64_t)sqlite3_column_int64(row, 0)};
  copy_text(job->id, sizeof job->id, row, 1);
  job->state = (enum job_state)sqlite3_column_int(row, 2);
  job->clip = (enum job_clip)sqlite3_column_int(row, 3);
  copy_text(job->model, sizeof job->model, row, 4);
  job->has_betas = sqlite3_column_type(row, 5) == SQLITE_BLOB;
  copy_blob(job->betas, sizeof job->betas, row, 5);
  copy_blob(job->fingerprint, sizeof job->fingerprint, row, 6);
  job->created = sqlite3_column_double(row, 7);
  job->started = sqlite3_column_double(row, 8);
  job->finished = sqlite3_column_double(row, 9);
  job->frames = (uint64_t)sqlite3_column_int64(row, 10);
  job->frames_done = (uint64_t)sqlite3_column_int64(row, 11);
  job->attempts = (uint64_t)sqlite3_column_int64(row, 12);
  copy_text(job->error, sizeof job->error, row, 13);
}

// Runs a statement to its end; its first row, if it has one, goes to `job` (which may be NULL).
// STORE_OK with a row, or without one when something was changed; STORE_NONE otherwise.
static int run(sqlite3_stmt *statement, struct job *job, const char *what,
               struct dsnet_error *error) {
  sqlite3 *database = sqlite3_db_handle(statement);
  int result = STORE_NONE, step;
  while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
    result = STORE_OK;
    if (job)
      read_job(statement, job);
  }
  if (step != SQLITE_DONE)
    result = fail(database, what, error);
  else if (!sqlite3_stmt_readonly(statement) && sqlite3_changes(database))
    result = STORE_OK;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return result;
}

// Functions of the interface ---------------------------------------------------------------------

static int put(struct store *store, struct job *job, const char *key, struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  sqlite3_stmt *insert = s->statements[STATEMENT_PUT];
  pthread_mutex_lock(&s->writer.lock);
  sqlite3_bind_text(insert, 1, job->id, -1, SQLITE_STATIC);
  sqlite3_bind_text(insert, 2, key, -1, SQLITE_STATIC);
  sqlite3_bind_int(insert, 3, (int)job->clip);
  sqlite3_bind_text(insert, 4, job->model, -1, SQLITE_STATIC);
  if (job->has_betas)
    sqlite3_bind_blob(insert, 5, job->betas, sizeof job->betas, SQLITE_STATIC);
  sqlite3_bind_blob(insert, 6, job->fingerprint, sizeof job->fingerprint, SQLITE_STATIC);
  sqlite3_bind_double(insert, 7, job->created);
  int result = run(insert, NULL, "cannot keep a job", error);
  if (result == STORE_OK) {
    job->number = (uint64_t)sqlite3_last_insert_rowid(s->writer.database);
  } else if (result == STORE_NONE) {
    sqlite3_bind_text(s->statements[STATEMENT_BY_KEY], 1, key, -1, SQLITE_STATIC);
    result = run(s->statements[STATEMENT_BY_KEY], job, "cannot read a job", error);
    result = result == STORE_OK ? STORE_EXISTS : result;
  }
  pthread_mutex_unlock(&s->writer.lock);
  return result;
}

static int get(struct store *store, const char *id, struct job *job, struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  pthread_mutex_lock(&s->reader.lock);
  sqlite3_bind_text(s->statements[STATEMENT_BY_ID], 1, id, -1, SQLITE_STATIC);
  int result = run(s->statements[STATEMENT_BY_ID], job, "cannot read a job", error);
  pthread_mutex_unlock(&s->reader.lock);
  return result;
}

// All rows of a statement whose values are bound.
static int read_jobs(struct sqlite_store *s, sqlite3_stmt *select, struct job *jobs, size_t *count,
                     struct dsnet_error *error) {
  int step, result = STORE_OK;
  *count = 0;
  while ((step = sqlite3_step(select)) == SQLITE_ROW)
    read_job(select, &jobs[(*count)++]);
  if (step != SQLITE_DONE)
    result = fail(s->reader.database, "cannot list jobs", error);
  sqlite3_reset(select);
  return result;
}

static int list(struct store *store, enum job_state state, uint64_t after, size_t limit,
                struct job *jobs, size_t *count, struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  sqlite3_stmt *select = s->statements[STATEMENT_LIST];
  pthread_mutex_lock(&s->reader.lock);
  sqlite3_bind_int64(select, 1, (sqlite3_int64)after);
  sqlite3_bind_int(select, 2, (int)state);
  sqlite3_bind_int64(select, 3, (sqlite3_int64)limit);
  int result = read_jobs(s, select, jobs, count, error);
  pthread_mutex_unlock(&s->reader.lock);
  return result;
}

static int expired(struct store *store, double before, size_t limit, struct job *jobs,
                   size_t *count, struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  sqlite3_stmt *select = s->statements[STATEMENT_EXPIRED];
  pthread_mutex_lock(&s->reader.lock);
  sqlite3_bind_double(select, 1, before);
  sqlite3_bind_int64(select, 2, (sqlite3_int64)limit);
  int result = read_jobs(s, select, jobs, count, error);
  pthread_mutex_unlock(&s->reader.lock);
  return result;
}

static int waiting(struct store *store, size_t *count, struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  sqlite3_stmt *select = s->statements[STATEMENT_WAITING];
  int result = STORE_OK;
  pthread_mutex_lock(&s->reader.lock);
  if (sqlite3_step(select) == SQLITE_ROW)
    *count = (size_t)sqlite3_column_int64(select, 0);
  else
    result = fail(s->reader.database, "cannot count jobs", error);
  sqlite3_reset(select);
  pthread_mutex_unlock(&s->reader.lock);
  return result;
}

static int claim(struct store *store, const char *owner, double now, double lease, struct job *job,
                 struct dsnet_error *error) {
  (void)lease; // nobody else can be the owner
  struct sqlite_store *s = self(store);
  pthread_mutex_lock(&s->writer.lock);
  sqlite3_bind_text(s->statements[STATEMENT_CLAIM], 1, owner, -1, SQLITE_STATIC);
  sqlite3_bind_double(s->statements[STATEMENT_CLAIM], 2, now);
  int result = run(s->statements[STATEMENT_CLAIM], job, "cannot claim a job", error);
  pthread_mutex_unlock(&s->writer.lock);
  return result;
}

static void bind_claim(sqlite3_stmt *statement, const struct job *job, const char *owner) {
  sqlite3_bind_text(statement, 1, job->id, -1, SQLITE_STATIC);
  sqlite3_bind_text(statement, 2, owner, -1, SQLITE_STATIC);
  sqlite3_bind_int64(statement, 3, (sqlite3_int64)job->attempts);
}

static int lost_when_none(int result) {
  return result == STORE_NONE ? STORE_LOST : result;
}

static int progress(struct store *store, const struct job *job, const char *owner, double lease,
                    struct dsnet_error *error) {
  (void)lease;
  struct sqlite_store *s = self(store);
  sqlite3_stmt *update = s->statements[STATEMENT_PROGRESS];
  pthread_mutex_lock(&s->writer.lock);
  bind_claim(update, job, owner);
  sqlite3_bind_int64(update, 4, (sqlite3_int64)job->frames);
  sqlite3_bind_int64(update, 5, (sqlite3_int64)job->frames_done);
  int result = run(update, NULL, "cannot note a job's progress", error);
  pthread_mutex_unlock(&s->writer.lock);
  return lost_when_none(result);
}

static int finish(struct store *store, const struct job *job, const char *owner,
                  struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  sqlite3_stmt *update = s->statements[STATEMENT_FINISH];
  pthread_mutex_lock(&s->writer.lock);
  bind_claim(update, job, owner);
  sqlite3_bind_int(update, 4, (int)job->state);
  sqlite3_bind_int64(update, 5, (sqlite3_int64)job->frames);
  sqlite3_bind_int64(update, 6, (sqlite3_int64)job->frames_done);
  sqlite3_bind_double(update, 7, job->finished);
  sqlite3_bind_text(update, 8, job->error, -1, SQLITE_STATIC);
  int result = run(update, NULL, "cannot end a job", error);
  pthread_mutex_unlock(&s->writer.lock);
  return lost_when_none(result);
}

static int release(struct store *store, const struct job *job, const char *owner,
                   struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  pthread_mutex_lock(&s->writer.lock);
  bind_claim(s->statements[STATEMENT_RELEASE], job, owner);
  int result = run(s->statements[STATEMENT_RELEASE], NULL, "cannot give a job back", error);
  pthread_mutex_unlock(&s->writer.lock);
  return lost_when_none(result);
}

static int cancel(struct store *store, const char *id, double now, struct job *job,
                  struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  pthread_mutex_lock(&s->writer.lock);
  sqlite3_bind_text(s->statements[STATEMENT_CANCEL], 1, id, -1, SQLITE_STATIC);
  sqlite3_bind_double(s->statements[STATEMENT_CANCEL], 2, now);
  int result = run(s->statements[STATEMENT_CANCEL], NULL, "cannot cancel a job", error);
  if (result >= 0) {
    sqlite3_bind_text(s->statements[STATEMENT_SEEN], 1, id, -1, SQLITE_STATIC);
    result = run(s->statements[STATEMENT_SEEN], job, "cannot read a job", error);
  }
  pthread_mutex_unlock(&s->writer.lock);
  return result;
}

static int remove_job(struct store *store, const char *id, struct dsnet_error *error) {
  struct sqlite_store *s = self(store);
  pthread_mutex_lock(&s->writer.lock);
  sqlite3_bind_text(s->statements[STATEMENT_REMOVE], 1, id, -1, SQLITE_STATIC);
  int result = run(s->statements[STATEMENT_REMOVE], NULL, "cannot remove a job", error);
  if (result == STORE_NONE) {
    sqlite3_bind_text(s->statements[STATEMENT_SEEN], 1, id, -1, SQLITE_STATIC);
    result = run(s->statements[STATEMENT_SEEN], NULL, "cannot read a job", error);
    result = result == STORE_OK ? STORE_LOST : result;
  }
  pthread_mutex_unlock(&s->writer.lock);
  return result;
}

// Opening and closing ----------------------------------------------------------------------------

static void close_store(struct store *store) {
  struct sqlite_store *s = self(store);
  for (size_t i = 0; i < STATEMENT_COUNT; i++)
    sqlite3_finalize(s->statements[i]);
  sqlite3_close(s->reader.database);
  sqlite3_close(s->writer.database);
  pthread_mutex_destroy(&s->reader.lock);
  pthread_mutex_destroy(&s->writer.lock);
  if (s->folder_lock >= 0)
    close(s->folder_lock);
  free(s);
}

static int lock_folder(struct sqlite_store *s, const char *folder, struct dsnet_error *error) {
  char path[4096];
  snprintf(path, sizeof path, "%s/lock", folder);
  s->folder_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (s->folder_lock < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s cannot be written: %m", path);
  if (flock(s->folder_lock, LOCK_EX | LOCK_NB))
    return dsnet_error_set(error, DSNET_EIO, "%s is in use by another process", folder);
  return 0;
}

static int connect_database(struct connection *connection, const char *path, int flags,
                            const char *settings, struct dsnet_error *error) {
  int code = sqlite3_open_v2(path, &connection->database, flags, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_exec(connection->database, settings, NULL, NULL, NULL);
  if (code != SQLITE_OK)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", path, sqlite3_errmsg(connection->database));
  return 0;
}

static int read_number(sqlite3 *database, const char *query, sqlite3_int64 *number) {
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(database, query, -1, &statement, NULL) != SQLITE_OK)
    return -1;
  int result = sqlite3_step(statement) == SQLITE_ROW ? 0 : -1;
  *number = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return result;
}

// Creates the tables in a new database, and checks those of an old one.
static int prepare_schema(struct sqlite_store *s, const char *path, struct dsnet_error *error) {
  sqlite3 *database = s->writer.database;
  sqlite3_int64 version = 0, damage = 0;
  if (read_number(database, "PRAGMA user_version", &version) < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", path, sqlite3_errmsg(database));
  if (!version && sqlite3_exec(database, schema, NULL, NULL, NULL) != SQLITE_OK)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", path, sqlite3_errmsg(database));
  if (version > SCHEMA_VERSION)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "%s was written by a newer version", path);
  if (read_number(database, "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'",
                  &damage) < 0 ||
      damage)
    return dsnet_error_set(error, DSNET_EFORMAT, "%s is damaged", path);
  // Nobody else has the folder, so whoever had claimed these is gone.
  if (sqlite3_exec(database,
                   "UPDATE jobs SET state = 0, started = 0, frames_done = 0, owner = NULL "
                   "WHERE state = 1",
                   NULL, NULL, NULL) != SQLITE_OK)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", path, sqlite3_errmsg(database));
  return 0;
}

static int prepare_statements(struct sqlite_store *s, struct dsnet_error *error) {
  const struct {
    struct connection *connection;
    const char *text;
  } statements[] = {
#define X(name, connection, text) {&s->connection, text},
      STATEMENTS(X)
#undef X
  };
  for (size_t i = 0; i < STATEMENT_COUNT; i++) {
    sqlite3 *database = statements[i].connection->database;
    if (sqlite3_prepare_v3(database, statements[i].text, -1, SQLITE_PREPARE_PERSISTENT,
                           &s->statements[i], NULL) != SQLITE_OK)
      return dsnet_error_set(error, DSNET_EFORMAT, "the jobs' database: %s",
                             sqlite3_errmsg(database));
  }
  return 0;
}

int store_sqlite_open(struct store **store, const char *folder, struct dsnet_error *error) {
  static const struct store_functions functions = {.put = put,
                                                   .get = get,
                                                   .list = list,
                                                   .expired = expired,
                                                   .waiting = waiting,
                                                   .claim = claim,
                                                   .progress = progress,
                                                   .finish = finish,
                                                   .release = release,
                                                   .cancel = cancel,
                                                   .remove = remove_job,
                                                   .close = close_store};
  *store = NULL;
  struct sqlite_store *s = calloc(1, sizeof *s);
  if (!s)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  s->base.functions = &functions;
  s->folder_lock = -1;
  pthread_mutex_init(&s->reader.lock, NULL);
  pthread_mutex_init(&s->writer.lock, NULL);
  char path[4096];
  snprintf(path, sizeof path, "%s/jobs.sqlite", folder);
  int result = lock_folder(s, folder, error);
  if (result == 0)
    result = connect_database(&s->writer, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                              "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", error);
  if (result == 0)
    result = prepare_schema(s, path, error);
  if (result == 0)
    result =
        connect_database(&s->reader, path, SQLITE_OPEN_READWRITE, "PRAGMA query_only = 1;", error);
  if (result == 0)
    result = prepare_statements(s, error);
  if (result < 0) {
    close_store(&s->base);
    return result;
  }
  *store = &s->base;
  return 0;
}
