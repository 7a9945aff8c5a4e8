// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A softibd that answers only the requests of the preload library, for its tests:
//   fake_softibd SOCKET [NODE...]
// A host called "more" is the first node, with files that a later softibd may have (kMore).
// Prints "ready" once it listens; ends when its standard input does.
#include "drivers/sysfs/sysfs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

namespace {

using namespace ib::verbs::control;
using ib::Status;

struct Request {
  RequestHeader header;
  ViewIn view;
};
struct Answer {
  ReplyHeader header;
  ViewStatOut stat;
};

int memory_file(const std::string& text) {
  const int fd = memfd_create("softib-view", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Leaves the file offset at the end, as a careless daemon might.
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) return -1;
  fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
  return fd;
}

struct File {
  ViewKind kind;
  const char* path;
  const char* text;  // content, names, or target
};
constexpr File kMore[] = {
    {ViewKind::Directory, "/dev/infiniband", "strange0\nuverbs0\n"},
    {ViewKind::CharDevice, "/dev/infiniband/strange0", ""},
    {ViewKind::Directory, "/sys/class/misc", "rdma_cm\n"},
    {ViewKind::Directory, "/sys/class/misc/rdma_cm", "abi_version\n"},
    {ViewKind::File, "/sys/class/misc/rdma_cm/abi_version", "4\n"},
    {ViewKind::Directory, "/sys/class/misc/fuse", "fake\n"},
    {ViewKind::Directory, "/sys/class/net/lo", "fake\n"},
    {ViewKind::Directory, "/sys/class/net/lo/device/infiniband", "softib0\n"},
    {ViewKind::Link, "/sys/class/net/lo/device/infiniband/softib0",
     "../../../../infiniband/softib0"},
};

const File* find_more(const Request& request) {
  if (std::strcmp(request.view.node.data(), "more") != 0) return nullptr;
  const auto* found = std::find_if(std::begin(kMore), std::end(kMore), [&request](const File& f) {
    return std::strcmp(f.path, request.view.path.data()) == 0;
  });
  return found == std::end(kMore) ? nullptr : found;
}

int handle_more(const File& file, Code code, Answer& answer) {
  answer.header.status = static_cast<std::uint32_t>(Status::Ok);
  answer.stat = {};
  answer.stat.kind = file.kind;
  answer.stat.mode = 0444;
  if (file.kind == ViewKind::Link) {
    std::memcpy(answer.stat.target.data(), file.text, std::strlen(file.text));
  }
  if (file.kind == ViewKind::File) answer.stat.size = std::strlen(file.text);
  const bool has_content = code == Code::ViewList || file.kind == ViewKind::File;
  return has_content && code != Code::ViewStat ? memory_file(file.text) : -1;
}

// Fills in the answer; returns a descriptor to send with it, or -1.
int handle(const ib::drivers::Sysfs& view, const Request& request, Answer& answer) {
  if (const File* more = find_more(request)) {
    return handle_more(*more, static_cast<Code>(request.header.code), answer);
  }
  const bool is_more = std::strcmp(request.view.node.data(), "more") == 0;
  const char* node = is_more ? "" : request.view.node.data();
  const char* path = request.view.path.data();
  const auto file = view.stat(node, path);
  answer.header.status = static_cast<std::uint32_t>(file.error());
  if (!file) return -1;
  answer.stat = *file;
  const auto code = static_cast<Code>(request.header.code);
  const bool is_file = file->kind == ViewKind::File;
  if (code == Code::ViewOpen && is_file) {
    const auto text = view.read(node, path);
    answer.header.status = static_cast<std::uint32_t>(text.error());
    return text ? memory_file(*text) : -1;
  }
  if (code != Code::ViewList) return -1;
  if (file->kind == ViewKind::Directory) return memory_file(*view.list(node, path));
  answer.header.status = static_cast<std::uint32_t>(Status::InvalidParameter);
  return -1;
}

void send_answer(int peer, const Answer& answer, int fd) {
  iovec data{const_cast<Answer*>(&answer), sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  sendmsg(peer, &message, MSG_NOSIGNAL);
}

void serve(const ib::drivers::Sysfs& view, int peer) {
  Request request{};
  if (recv(peer, &request, sizeof request, 0) != sizeof request) return;
  Answer answer{};
  answer.header.tag = request.header.tag;
  answer.header.length = sizeof answer;
  const int fd = handle(view, request, answer);
  send_answer(peer, answer, fd);
  if (fd >= 0) close(fd);
}

int listen_at(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return -1;
  return listen(fd, 64) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  ib::fabric::Shape shape;
  if (argc > 2) shape.nodes.assign(argv + 2, argv + argc);
  shape.hcas_per_node = 2;
  shape.ports_per_hca = 2;
  auto fabric = ib::fabric::Fabric::create(shape);
  const int listener = listen_at(argv[1]);
  if (!fabric || listener < 0) {
    std::perror(argv[1]);
    return 1;
  }
  const ib::drivers::DeviceStatus devices;
  const ib::drivers::Sysfs view(*fabric, devices, 2);
  std::puts("ready");
  std::fflush(stdout);
  pollfd waits[2] = {{listener, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  while (poll(waits, 2, -1) >= 0 && waits[1].revents == 0) {
    if (waits[0].revents == 0) continue;
    const int peer = accept(listener, nullptr, nullptr);
    serve(view, peer);
    close(peer);
  }
  return 0;
}
