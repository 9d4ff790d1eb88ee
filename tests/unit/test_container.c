/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers by the names of their cgroups, and what runtimes say of them, by files as they write them.
 */
#include "os/container.h"
#include "os/container_find.h"
#include "os/container_names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define A	   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B	   "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID_DASHES "6b1ff6e0-7a3c-4c55-8a4e-0f3a1c2d3e4f"
#define UID_LINES  "6b1ff6e0_7a3c_4c55_8a4e_0f3a1c2d3e4f"

/* `id` NULL: none; `own`: the path of its own cgroup. */
static void expect(const char *path, const char *id, const char *own)
{
	struct container_place place;
	bool found = container__in_path(path, strlen(path), &place);

	cr_assert_eq(found, id != NULL, "%s", path);
	if (!found)
		return;
	cr_expect_str_eq(place.id, id, "%s: %s", path, place.id);
	cr_expect(strlen(own) == place.end && !memcmp(own, path, place.end), "%s: %.*s", path, (int)place.end,
		  path);
}

Test(container, forms)
{
	static const char *const forms[] = {
		"/docker/" A,
		"/system.slice/docker-" A ".scope",
		"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope",
		"/machine.slice/libpod-" A ".scope",
		"/libpod_parent/libpod-" A,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope",
		"/kubepods/burstable/pod" UID_DASHES "/" A,
		"/kubepods/pod" UID_DASHES "/crio-" A,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_LINES
		".slice/cri-containerd-" A ".scope",
		"/kubepods.slice/kubepods-pod" UID_LINES ".slice/crio-" A ".scope",
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_LINES
		".slice/docker-" A ".scope",
		"/system.slice/containerd.service/kubepods-burstable-pod" UID_LINES
		".slice:cri-containerd:" A,
		"/system.slice/nerdctl-" A ".scope",
		"/default/" A,
		"/../docker/" A,
	};
	char path[512];

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		expect(forms[i], A, forms[i]);
		snprintf(path, sizeof(path), "%s/container/a b", forms[i]);
		expect(path, A, forms[i]);
	}
}

Test(container, named)
{
	expect("/lxc.payload.web-1", "web-1", "/lxc.payload.web-1");
	expect("/lxc.payload/web/init.scope", "web", "/lxc.payload/web");
	expect("/lxc/web/system.slice", "web", "/lxc/web");
	expect("/machine.slice/machine-my\\x2dbox.scope/payload", "my-box",
	       "/machine.slice/machine-my\\x2dbox.scope");
	expect("/machine.slice/systemd-nspawn@box.service", "box",
	       "/machine.slice/systemd-nspawn@box.service");
	expect("/system.slice/runc-web.scope", "web", "/system.slice/runc-web.scope");
	expect("/user.slice/crun-my-web.scope/x", "my-web", "/user.slice/crun-my-web.scope");
}

/* The innermost; what is around it is found before its start. */
Test(container, nested)
{
	static const char path[] = "/docker/" A "/docker/" B "/x";
	struct container_place place;

	expect(path, B, "/docker/" A "/docker/" B);
	cr_assert(container__in_path(path, strlen(path), &place));
	cr_assert(container__in_path(path, place.start, &place));
	cr_expect_str_eq(place.id, A);
	cr_expect(!container__in_path(path, place.start, &place));
}

Test(container, none)
{
	static const char *const paths[] = {
		"",
		"/",
		"//",
		"/user.slice",
		"/docker",
		"/docker/",
		"/docker/0123456789ab",
		"/docker/" A "0",
		"/docker/x" A,
		"/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"/machine.slice/libpod-conmon-" A ".scope",
		"/kubepods.slice/crio-conmon-" A ".scope",
		"/lxc.monitor.web",
		"/lxc.payload.",
		"/lxc.payload",
		"/lxc",
		"/machine.slice/machine-.scope",
		"/machine.slice/machine-a\\x00b.scope",
		"/machine.slice/machine-\\xzz.scope",
		"/system.slice/runc-.scope",
		"/system.slice/systemd-nspawn@.service",
		"/.scope"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		expect(paths[i], NULL, NULL);
}

/* A name that is longer than any is none. */
Test(container, long_names)
{
	char path[4096] = "/lxc.payload.";

	memset(path + strlen(path), 'x', 3000);
	expect(path, NULL, NULL);
	memset(path, '\0', sizeof(path));
	strcpy(path, "/machine.slice/machine-");
	memset(path + strlen(path), 'x', 3000);
	strcpy(path + 3000, ".scope");
	expect(path, NULL, NULL);
}

static void expect_pod(const char *path, const char *uid, const char *own)
{
	size_t end;
	bool found = container__pod_in_path(path, strlen(path), uid, &end);

	cr_assert_eq(found, own != NULL, "%s", path);
	if (own)
		cr_expect_eq(end, strlen(own), "%s: %zu", path, end);
}

Test(container, pods)
{
	static const char slice[] =
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_LINES ".slice";
	char path[512];

	snprintf(path, sizeof(path), "%s/cri-containerd-" A ".scope", slice);
	expect_pod(path, UID_DASHES, slice);
	expect_pod(path, UID_LINES, slice);
	expect_pod(path, "6B1FF6E0-7A3C-4c55-8A4E-0F3A1C2D3E4F", slice);
	expect_pod("/kubepods/besteffort/pod" UID_DASHES "/" A, UID_DASHES,
		   "/kubepods/besteffort/pod" UID_DASHES);
	expect_pod("/kubepods/pod" UID_DASHES, UID_LINES, "/kubepods/pod" UID_DASHES);
	expect_pod("/x/kubepods-pod" UID_LINES ".slice:cri-containerd:" A, UID_DASHES,
		   "/x/kubepods-pod" UID_LINES ".slice:cri-containerd:" A);
	expect_pod("/kubepods/pod" UID_DASHES "0", UID_DASHES, NULL);
	expect_pod("/kubepods/pod6b1ff6e0", UID_DASHES, NULL);
	expect_pod("/" UID_DASHES, UID_DASHES, NULL);
	expect_pod("/kubepods/pod", "", NULL);
}

/* --- what runtimes say --- */

static struct container_names names;

static void read_text(enum container_file kind, const char *text, const char *directory)
{
	cr_assert_eq(container_names__parse(&names, kind, text, strlen(text), directory), 0);
}

static void free_names(void)
{
	container_names__free(&names);
	names = (struct container_names){};
}

TestSuite(container_names, .fini = free_names);

static void expect_name(const char *id, const char *name)
{
	const struct container_name *found = container_names__of_id(&names, id);

	cr_assert_not_null(found, "%s", id);
	cr_expect_str_eq(found->name, name);
}

Test(container_names, docker)
{
	read_text(CONTAINER_FILE_DOCKER,
		  "{\"StreamConfig\":{},\"State\":{\"Running\":true,\"Pid\":12},\"ID\":\"" A
		  "\",\"Name\":\"/web\"}",
		  A);
	expect_name(A, "web");
	cr_expect_null(container_names__of_id(&names, B));
	read_text(CONTAINER_FILE_DOCKER,
		  "{\"ID\":\"" B "\",\"Name\":\"/k8s_web_shop-1_prod_" UID_DASHES "_0\"}", B);
	expect_name(B, "prod/shop-1/web");
}

Test(container_names, docker_elsewhere)
{
	static const char text[] = "{\"log-driver\":\"local\",\"data-root\":\"/srv/docker\"}";
	char *root = container_names__docker_root(text, strlen(text));

	cr_expect_str_eq(root, "/srv/docker");
	free(root);
	cr_expect_null(container_names__docker_root("{}", 2));
	cr_expect_null(container_names__docker_root("{\"data-root\":[]}", 16));
	cr_expect_null(container_names__docker_root("", 0));
}

Test(container_names, storage)
{
	read_text(CONTAINER_FILE_STORAGE,
		  "[{\"id\":\"" A
		  "\",\"names\":[\"web\"],\"image\":\"x\",\"metadata\":\"{\\\"name\\\":\\\"web\\\"}\"},"
		  "{\"id\":\"" B "\",\"names\":[\"k8s_web_shop_prod_" UID_DASHES "_2\"]},"
		  "{\"id\":\"c\"},{\"names\":[\"x\"]},7,null]",
		  "");
	cr_expect_eq(names.items.len, 2);
	expect_name(A, "web");
	expect_name(B, "prod/shop/web");
}

Test(container_names, containerd)
{
	read_text(CONTAINER_FILE_CONTAINERD,
		  "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"web\","
		  "\"io.kubernetes.cri.sandbox-name\":\"shop\",\"io.kubernetes.cri.sandbox-namespace\":"
		  "\"prod\"}}",
		  A);
	expect_name(A, "prod/shop/web");
	read_text(CONTAINER_FILE_CONTAINERD, "{\"annotations\":{\"nerdctl/name\":\"db\"}}", B);
	expect_name(B, "db");
	read_text(CONTAINER_FILE_NERDCTL, A "\n", "cache");
	cr_expect_eq(names.items.len, 3);
	read_text(CONTAINER_FILE_NERDCTL, "0123", "short");
	read_text(CONTAINER_FILE_CONTAINERD, "{\"annotations\":{},\"linux\":{\"cgroupsPath\":\"/x\"}}", A);
	cr_expect_eq(names.items.len, 3);
	read_text(CONTAINER_FILE_CONTAINERD, "{\"linux\":{\"cgroupsPath\":\"/default/web\"}}", "web");
	cr_assert_eq(names.items.len, 4);
	cr_expect_str_eq(names.items.items[3].cgroup, "/default/web");
	read_text(CONTAINER_FILE_CONTAINERD, "{\"linux\":{\"cgroupsPath\":\"/\"}}", "web");
	cr_expect_eq(names.items.len, 4);
}

Test(container_names, oci)
{
	read_text(CONTAINER_FILE_RUNC,
		  "{\"id\":\"web-2\",\"init_process_pid\":6708,\"init_process_start\":3688122}", "web-2");
	read_text(CONTAINER_FILE_CRUN,
		  "{\"pid\":8540,\"process-start-time\":3689917,\"cgroup-path\":\"/web-1\",\"scope\":\"\"}",
		  "web-1");
	read_text(CONTAINER_FILE_CRUN, "{\"pid\":8541,\"cgroup-path\":\"/\"}", "no-cgroup");
	cr_assert_eq(names.items.len, 2);
	cr_expect_str_eq(names.items.items[0].id, "web-2");
	cr_expect(names.items.items[0].init == 6708 && names.items.items[0].start_ticks == 3688122);
	cr_expect_str_eq(names.items.items[1].id, "web-1");
	cr_expect_str_eq(names.items.items[1].cgroup, "/web-1");
	cr_expect(names.items.items[1].init == 8540 && names.items.items[1].start_ticks == 3689917);
}

#define WORDS(text) text, sizeof(text) /* a NUL more at the end: an empty word */

Test(container_names, options)
{
	static const char words[] = "runc\0--root-dir\0/a\0--root\0/b\0--log=/c\0-x";

	cr_expect_str_eq(container_names__option(words, sizeof(words), "--root"), "/b");
	cr_expect_str_eq(container_names__option(words, sizeof(words), "--log"), "/c");
	cr_expect_null(container_names__option(words, sizeof(words), "-x"), "it is the last one");
	cr_expect_null(container_names__option(words, sizeof(words) - 1, "-x"), "it has no end");
	cr_expect_null(container_names__option(words, 0, "runc"));
}

static void read_words(const char *words, size_t len)
{
	cr_assert_eq(container_names__parse(&names, CONTAINER_FILE_CONMON, words, len, ""), 0);
}

Test(container_names, conmon)
{
	read_words(WORDS("conmon\0--api-version\0" "1\0-c\0" A "\0-u\0" A "\0-n\0shop"));
	expect_name(A, "shop");
	read_words(WORDS("conmon\0--cid=" B "\0--name=k8s_web_shop_prod_" UID_DASHES "_0"));
	expect_name(B, "prod/shop/web");
	read_words(WORDS("conmon\0-c\0short\0-n\0x"));
	read_words(WORDS("conmon\0-c\0" A "\0-n"));
	cr_expect_eq(names.items.len, 2);
}

/* Whatever else there may be in a file, it is not one of ours. */
Test(container_names, other_contents)
{
	static const char *const texts[] = {
		"",
		"{",
		"[",
		"null",
		"7",
		"\"x\"",
		"{\"ID\":7,\"Name\":[]}",
		"{\"ID\":\"\",\"Name\":\"/x\"}",
		"{\"id\":{}}",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
		"{\"ID\":\"a\\u0000b\",\"Name\":\"/x\"}",
		"{\"annotations\":[]}",
		"{\"pid\":-1,\"cgroup-path\":7}",
		"\xff\xfe{}"};

	for (int kind = CONTAINER_FILE_DOCKER; kind <= CONTAINER_FILE_CONMON; kind++)
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			read_text(kind, texts[i], "d");
	cr_expect_eq(names.items.len, 0);
}

Test(container_names, meant)
{
	struct container_name web = {.id = (char *)A, .name = (char *)"prod/shop/web"};

	cr_expect(container_name__is(&web, "web"));
	cr_expect(container_name__is(&web, "shop/web"));
	cr_expect(container_name__is(&web, "prod/shop/web"));
	cr_expect(!container_name__is(&web, "eb"));
	cr_expect(!container_name__is(&web, "prod"));
	cr_expect(!container_name__is(&web, "/web"));
	cr_expect(!container_name__is(&web, ""));
	cr_expect(!container_name__is(&(struct container_name){.id = (char *)A}, A));
}

/* --- of a process --- */

static void expect_of(const char *text, const char *id)
{
	char got[CONTAINER_ID_BYTES];
	bool found = container__of_text(text, &names, got);

	cr_assert_eq(found, id != NULL, "%s", text);
	if (id)
		cr_expect_str_eq(got, id);
}

Test(container_names, of_a_process)
{
	read_text(CONTAINER_FILE_CRUN, "{\"pid\":1,\"cgroup-path\":\"/web-1\"}", "web-1");
	expect_of("0::/\n", NULL);
	expect_of("4:memory:/docker/" A "\n0::/system.slice\n", A);
	expect_of("4:memory:/docker/" A "\n0::/docker/" B "\n", B);
	expect_of("4:memory:/\n0::/web-1/x\n", "web-1");
	expect_of("0::/web-10\n", NULL);
	expect_of("0::/web-1/docker/" A "\n", A);
}

Test(container_names, of_a_user_are_limited)
{
	char text[4096] = "[{\"id\":\"" B "\",\"names\":[\"a\"";

	for (int i = 1; i < 300; i++)
		strcat(text, ",\"a\"");
	strcat(text, "]}]");
	for (names.owner = 1000; names.owner < 1002; names.owner++) {
		read_text(CONTAINER_FILE_STORAGE, text, "");
		read_text(CONTAINER_FILE_STORAGE, text, "");
	}
	cr_expect_eq(names.items.len, 2 * 256);
	cr_expect_eq(names.items.items[256].owner, 1001);
	names.owner = 0;
	read_text(CONTAINER_FILE_STORAGE, text, "");
	cr_expect_eq(names.items.len, 2 * 256 + 300);
}

Test(container_names, of_root_win)
{
	names.owner = 1000;
	read_text(CONTAINER_FILE_STORAGE, "[{\"id\":\"" A "\",\"names\":[\"bad\"]}]", "");
	read_text(CONTAINER_FILE_STORAGE, "[{\"id\":\"" B "\",\"names\":[\"own\"]}]", "");
	names.owner = 0;
	read_text(CONTAINER_FILE_STORAGE, "[{\"id\":\"" A "\",\"names\":[\"good\"]}]", "");
	container_names__settle(&names);
	cr_expect_eq(names.items.len, 2);
	expect_name(A, "good");
	expect_name(B, "own");
}
