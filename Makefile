# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#   make            build/pybpfprof
#   make test       unit tests (no privileges), plain and under ASan + UBSan
#   make test-live  tests on real Pythons with real BPF (root; see scripts/check)
#   make fuzz       the decoders of foreign bytes under libFuzzer, FUZZ_SECONDS (5) each
#   make install    PREFIX=/usr/local DESTDIR=
#
# V=1 shows commands, DEBUG=1 builds without optimisation, ASAN=1 builds everything under ASan and UBSan in its own folder.

OUT     := build$(if $(ASAN),/asan)$(if $(DEBUG),/debug)
PREFIX  ?= /usr/local
CC      ?= cc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
VERSION := 0.1.0

Q   := $(if $(V),,@)
msg  = $(if $(V),,@printf '  %-8s %s\n' "$(1)" "$(patsubst $(OUT)/%,%,$(2))";)

WARN   := -Wall -Wextra -Wno-unused-parameter -Wmissing-prototypes -Wstrict-prototypes -Wvla
OPT    := $(if $(DEBUG),-O0,$(if $(ASAN),-O1,-O2))
ifdef ASAN
SAN    := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
CFLAGS += -std=gnu11 -g $(OPT) $(WARN) $(SAN) -D_GNU_SOURCE -DPYBPFPROF_VERSION='"$(VERSION)"' \
          -Iuser -Iinclude -I$(OUT) $(shell $(PKG_CONFIG) --cflags libbpf libelf json-c)
LDLIBS += $(shell $(PKG_CONFIG) --libs libbpf libelf json-c zlib)
BPF_CFLAGS := -std=gnu11 -g -O2 -target bpf -mcpu=v3 -Wall -Wno-unused-function -D__TARGET_ARCH_x86 \
          -Ivmlinux -Iinclude -Ibpf $(shell $(PKG_CONFIG) --cflags libbpf)

SRCS  := $(sort $(wildcard user/base/*.c user/agg/*.c user/out/*.c user/os/*.c user/py/*.c user/run/*.c user/options*.c \
	   user/outputs.c user/print.c user/quit.c user/diff_command.c user/report_command.c))
OBJS  := $(SRCS:%.c=$(OUT)/%.o)
TESTS := $(patsubst tests/unit/%.c,$(OUT)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
LIVE_OBJS := $(patsubst tests/%.c,$(OUT)/%.o,$(filter-out tests/live/test_%,$(wildcard tests/live/*.c)))
LIVE_TESTS := $(patsubst tests/live/%.c,$(OUT)/live/%,$(sort $(wildcard tests/live/test_*.c)))

.PHONY: all golden test test-plain test-live check-layers check-headers check-tables fuzz install clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(OUT)/pybpfprof

$(OUT)/pybpfprof: $(OUT)/user/main.o $(OBJS)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(OUT)/user/%.o: user/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

# The kernel side: one object, linked and embedded as a skeleton that only run/sampler*.c include.
$(OUT)/pybpfprof.bpf.o: bpf/pybpfprof.bpf.c
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $@.d -c $< -o $(@:.bpf.o=.tmp.bpf.o)
	$(Q)$(BPFTOOL) gen object $@ $(@:.bpf.o=.tmp.bpf.o)

$(OUT)/pybpfprof.skel.h: $(OUT)/pybpfprof.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name pybpfprof_bpf > $@

$(OUT)/user/run/sampler.o $(OUT)/user/run/sampler_load.o: $(OUT)/pybpfprof.skel.h

# The pages: one file of its parts, then its bytes for the compiler.
$(OUT)/flamegraph.html $(OUT)/heatmap.html: $(OUT)/%.html: user/out/viewer/%.html scripts/join-page $(wildcard user/out/viewer/*)
	$(call msg,PAGE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)scripts/join-page $< > $@

$(OUT)/%_page.inc: $(OUT)/%.html
	$(Q)od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g' > $@

$(OUT)/user/out/flamegraph.o $(OUT)/fuzz/user/out/flamegraph.o: $(OUT)/flamegraph_page.inc
$(OUT)/user/out/heatmap.o $(OUT)/fuzz/user/out/heatmap.o: $(OUT)/heatmap_page.inc

# Tests: each file of tests/unit is one Criterion program, linked with everything but main.
$(OUT)/tests/%: tests/unit/%.c $(OBJS)
	$(call msg,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -Itests -MMD -MP -MF $@.d $< $(OBJS) $(LDFLAGS) $(LDLIBS) -lcriterion -o $@

# Profiles without a process, for tests of their readers and for scripts/bench.
$(OUT)/profiles: tests/profiles.c $(OBJS)
	$(call msg,TEST,$@)
	$(Q)$(CC) $(CFLAGS) -Itests -MMD -MP -MF $@.d $< $(OBJS) $(LDFLAGS) $(LDLIBS) -o $@

# Live tests: the same, with what they share, on real Pythons.
$(OUT)/live/%.o: tests/live/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/live/%: $(OUT)/live/%.o $(LIVE_OBJS) $(OBJS)
	$(call msg,TEST,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lcriterion -lm -o $@

build-tests: $(TESTS)
build-live: $(LIVE_TESTS) $(OUT)/pybpfprof $(OUT)/profiles

test-plain: $(TESTS)
	$(Q)fail=0; for t in $(TESTS); do echo "== $${t##*/}"; $$t --color=never || fail=1; done; exit $$fail

# After an intended change of a format: rewrite what test_formats compares with, and look at the difference.
golden: $(OUT)/tests/test_formats
	$(Q)PYBPFPROF_GOLDEN=1 $< --color=never --filter 'formats/golden*' && git --no-pager diff --stat tests/golden

test: check-layers check-headers check-tables test-plain
	$(Q)$(MAKE) --no-print-directory ASAN=1 test-plain

test-live: build-live
	$(Q)$(MAKE) --no-print-directory ASAN=1 build/asan/pybpfprof
	$(Q)scripts/live-tests

# Fuzz targets are built apart, with clang, and of what knows no kernel (all but run/). Inputs that were worth keeping stay in corpus/.
FUZZ_SECONDS ?= 5
FUZZERS   := $(patsubst tests/fuzz/%.c,$(OUT)/fuzz/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_OBJS := $(patsubst %.c,$(OUT)/fuzz/%.o,$(filter-out user/run/%,$(SRCS)))
FUZZ_SAN  := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

$(OUT)/fuzz/user/%.o: user/%.c
	$(call msg,FUZZ-CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CFLAGS) $(FUZZ_SAN) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(OUT)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_OBJS)
	$(call msg,FUZZ,$@)
	$(Q)$(CLANG) $(CFLAGS) -Itests $(FUZZ_SAN) -fsanitize=fuzzer -MMD -MP -MF $@.d $< $(FUZZ_OBJS) $(LDFLAGS) $(LDLIBS) -o $@

fuzz: $(FUZZERS)
	$(Q)fail=0; for t in $(FUZZERS); do n=$${t##*/}; mkdir -p $(OUT)/fuzz/corpus/$$n; \
		if $$t -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
			-artifact_prefix=$(OUT)/fuzz/$$n- $(OUT)/fuzz/corpus/$$n >$(OUT)/fuzz/$$n.log 2>&1; \
		then sed -n "s/^stat::number_of_executed_units: */$$n: runs /p" $(OUT)/fuzz/$$n.log; \
		else tail -40 $(OUT)/fuzz/$$n.log; fail=1; fi; done; exit $$fail

check-layers:
	$(Q)scripts/check-layers

# Every header compiles alone.
check-headers:
	$(Q)for h in include/*.h user/*/*.h user/*.h; do [ -f $$h ] || continue; \
		echo "#include \"$$h\"" | $(CC) $(CFLAGS) -I. -fsyntax-only -x c - || exit 1; done

# The tables of offsets are what their source gives; for a machine without Python the committed ones are good enough.
check-tables:
	$(Q)if command -v python3 >/dev/null; then scripts/gen-offsets.py --check; else echo "check-tables: no python3: skipped"; fi

install: $(OUT)/pybpfprof
	install -D -m 755 $< $(DESTDIR)$(PREFIX)/bin/pybpfprof

clean:
	rm -rf build

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
