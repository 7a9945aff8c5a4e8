// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// conformance_peer SOCKET PATH NODE: a side of a test in a process of its own. Commands arrive on
// standard input, which is a socket; the program ends when it is closed.
// conformance_peer SOCKET PATH NODE --traffic SEED: one end of the traffic of kill_test.cpp.
// conformance_peer SOCKET PATH NODE --services: a side that accepts (service_client.h).
#include "engine.h"
#include "peer/peer_socket.h"
#include "services/service_client.h"
#include "traffic.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  using namespace ib::conformance;
  const bool is_traffic = argc == 6 && std::string_view(argv[4]) == "--traffic";
  const bool has_services = argc == 5 && std::string_view(argv[4]) == "--services";
  if (argc != 4 && !is_traffic && !has_services) {
    std::fprintf(stderr, "usage: conformance_peer SOCKET PATH NODE (tests start it)\n");
    return 2;
  }
  HostSettings settings;
  settings.socket = argv[1];
  settings.path = argv[2];
  settings.node = argv[3];
  settings.program = "conformance_peer";
  if (is_traffic) return run_traffic(settings, std::strtoull(argv[5], nullptr, 0), STDIN_FILENO);
  if (has_services) return run_service_peer(settings, STDIN_FILENO);
  Reply hello;
  const auto engine = Engine::attach(settings, hello.reason);
  if (!engine) hello.status = ib::Status::IoError;
  if (!send_reply(STDIN_FILENO, hello) || !engine) return 1;
  for (;;) {
    std::uint32_t command = 0;
    std::string unused;
    Message in;
    if (!receive_frame(STDIN_FILENO, command, unused, in)) return 0;
    if (!send_reply(STDIN_FILENO, engine->run(static_cast<Command>(command), std::move(in))))
      return 0;
  }
}
