# pubsub_fdw: see README.md (users), CONTRIBUTING.md and src/README (developers)

MODULE_big = pubsub_fdw
OBJS = \
	src/pubsub_fdw.o \
	src/option.o \
	src/option_check.o \
	src/option_value.o \
	src/option_validate.o \
	src/option_resolve.o \
	src/column.o \
	src/plan.o \
	src/bounds.o \
	src/reader.o \
	src/consume.o \
	src/ends.o \
	src/scan.o \
	src/convert.o \
	src/event_time.o \
	src/decode.o \
	src/decode_json.o \
	src/modify.o \
	src/publish.o \
	src/encode.o \
	src/encode_json.o \
	src/pending.o \
	src/pending_log.o \
	src/driver.o \
	src/session.o \
	src/xact.o \
	src/wait.o \
	src/error.o \
	src/read_func.o \
	src/ingest.o \
	src/ingest_target.o \
	src/ingest_insert.o \
	src/position.o \
	src/admin_func.o \
	src/kafka/kafka_driver.o \
	src/kafka/kafka_conf.o \
	src/kafka/kafka_offsets.o \
	src/kafka/kafka_source.o \
	src/kafka/kafka_sink.o \
	src/kafka/kafka_admin.o \
	src/kafka/kafka_error.o \
	src/google/google_driver.o \
	src/google/google_http.o \
	src/google/google_grpc.o \
	src/google/google_auth.o \
	src/google/google_json.o \
	src/google/google_lease.o \
	src/google/google_keeper.o \
	src/google/google_ack.o \
	src/google/google_source.o \
	src/google/google_sink.o \
	src/google/google_admin.o \
	src/google/google_error.o \
	src/google/pubsub.pb-c.o

PGFILEDESC = "pubsub_fdw - foreign-data wrapper for Apache Kafka and Google Cloud Pub/Sub"

EXTENSION = pubsub_fdw
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(srcdir)/pubsub_fdw.control)
DATA = $(wildcard $(srcdir)/sql/pubsub_fdw--*.sql)
EXTRA_CLEAN = src/google/pubsub.pb-c.c src/google/pubsub.pb-c.h

PG_CONFIG ?= pg_config

# The server's own headers do not pass -Wextra; as system headers they are
# not looked at.
PG_CPPFLAGS = -isystem $(shell $(PG_CONFIG) --includedir-server) \
	-I$(srcdir)/src -Isrc -DPUBSUB_FDW_VERSION='"$(EXTVERSION)"'
PG_CFLAGS = -Wall -Wextra -Werror
SHLIB_LINK = -lrdkafka -lcurl -ljansson -lprotobuf-c -lcrypto -lpthread \
	-Wl,-Bsymbolic

# Tests: one name per line; test/check_layers.sh looks for files that are not
# listed.  REGRESS and ISOLATION need no broker and are what "make installcheck"
# runs; the others run with "make check" only, as do test/t/*.pl.
REGRESS = \
	aggregate \
	columns \
	dummy_ack \
	dummy_ingest \
	dummy_publish \
	dummy_scan \
	errors \
	explain \
	format_json \
	format_raw \
	options \
	privileges
REGRESS_OPTS = --load-extension=pubsub_fdw --load-extension=pubsub_fdw_dummy
REGRESS_PREP = test-dummy

# test/isolation/specs
ISOLATION = \
	ingest_share \
	log_first \
	log_share \
	queue_share
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=test/isolation \
	--load-extension=pubsub_fdw --load-extension=pubsub_fdw_dummy

# test/broker/kafka/sql, against Apache Kafka
REGRESS_KAFKA = \
	consume \
	format_json \
	format_raw \
	ingest \
	metadata \
	publish \
	read \
	transactions

# test/broker/google/sql, against Google's Pub/Sub emulator
REGRESS_GOOGLE = \
	consume \
	format \
	ingest \
	names \
	publish \
	read

# These prepare a bare machine themselves, where there may be no pg_config yet.
ifneq (,$(filter check demo layers bench,$(MAKECMDGOALS)))

.PHONY: check demo layers bench
check:
	@test/run
demo:
	@test/demo/run
layers:
	@test/check_layers.sh
bench:
	@bench/run

else

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The brokers that "make installcheck" plays on are an extension of their own,
# which the server must find.  Installing it may take more rights than testing.
.PHONY: test-dummy install-dummy
test-dummy:
	$(MAKE) -C test/dummy PG_CONFIG=$(PG_CONFIG) all
	cmp -s test/dummy/pubsub_fdw_dummy.so \
		$(DESTDIR)$(pkglibdir)/pubsub_fdw_dummy.so || \
		$(MAKE) install-dummy
install-dummy:
	$(MAKE) -C test/dummy PG_CONFIG=$(PG_CONFIG) install

# The value of a variable, for test/run
print-%:
	@echo $($*)

PROTOC_C ?= protoc-c

src/google/pubsub.pb-c.c: $(srcdir)/src/google/pubsub.proto
	@mkdir -p src/google
	$(PROTOC_C) --proto_path=$(srcdir)/src/google --c_out=src/google pubsub.proto

src/google/pubsub.pb-c.h: src/google/pubsub.pb-c.c ;

$(filter src/google/%.o,$(OBJS)): src/google/pubsub.pb-c.h

$(OBJS): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/kafka/*.h $(srcdir)/src/google/*.h)

endif
