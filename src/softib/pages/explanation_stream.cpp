// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lines of the trace about connections of the socket switch (services/streams/): those that stay
// TCP, and those that are reset.
#include "softib/pages/explanation.h"

#include <array>

namespace ib::softib {
namespace {

struct Row {
  std::string_view text;
  Explanation meaning;
};

// The first one that fits. The last one of those that stay TCP fits all of them.
constexpr std::array kRows = {
    Row{"does not use the socket switch",
        {"connection reset: accepted without the socket switch",
         "The listener is one of the socket switch, but the program that accepted speaks TCP: it "
         "is "
         "static, or accepts by io_uring or a system call of its own. The client has got "
         "ECONNRESET.",
         "Start the program that listens without --sockets: its clients get TCP."}},
    Row{"listens there with the socket switch",
        {"stays TCP: no listener of the socket switch",
         "At that address and port no program listens with the switch, so the connection is one of "
         "TCP, if any program listens there at all.",
         "Start the server as `softib run --sockets -- PROGRAM`, on the node of that address; "
         "`softib connections` lists the listeners."}},
    Row{"has no active port",
        {"stays TCP: no way over the fabric",
         "The client's node has no port that is active and leads to the server's node.",
         "`softib status` shows the ports, `softib port up` brings one up. The next connection "
         "tries again."}},
    Row{"a pair of sockets:",
        {"stays TCP: no descriptors", "softibd could not make the descriptors of a stream.",
         "Raise `ulimit -n` where the fabric is started. The next connection tries again."}},
    Row{"an HCA was pulled out",
        {"stays TCP: the HCA went away", "An HCA was pulled out while the stream was being made.",
         "The next connection uses an HCA that is there."}},
    Row{"in time",
        {"stays TCP: too slow",
         "The two nodes did not make the stream within seconds: a link loses packets, or softibd "
         "has no processor.",
         "`softib status` shows faults of links and processes that softibd waits for."}},
    Row{"the communication manager",
        {"stays TCP: no connection over the fabric",
         "The communication managers of the two nodes did not agree on a connection.",
         "`softib status` shows ports and faults of links, `softib trace` what came before."}},
    Row{" stays TCP: ",
        {"stays TCP", "softibd could not make a stream; the reason is behind the colon.",
         "The connection works over TCP. The next one tries again."}},
};

}  // namespace

std::string explain_stream(std::string_view line) {
  const bool is_one = line.find("TCP to ") != std::string_view::npos &&
                      (line.find(" stays TCP: ") != std::string_view::npos ||
                       line.find(" is reset: ") != std::string_view::npos);
  if (!is_one) return {};
  for (const Row& row : kRows) {
    if (line.find(row.text) != std::string_view::npos) return card(row.meaning.name, row.meaning);
  }
  return {};
}

}  // namespace ib::softib
