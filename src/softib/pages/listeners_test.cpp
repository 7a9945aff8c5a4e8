// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/listeners.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

constexpr const char* kOurs = "/run/softib/default.sock";

Listener listener(std::uint16_t port, const char* socket, const char* node) {
  return {port, "TCP", "server", 812, socket, node, false, {}};
}

TEST(Listeners, AKernelTableIsReadByStateAndPort) {
  const auto sockets = listening_sockets(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 00000000:4853 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
      "77001 1 ffff 100 0 0 10 0\n"
      "   1: 0100007F:4853 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 "
      "77002 1 ffff 20 0 0 10 -1\n"
      "nonsense\n");
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(sockets[0].inode, 77001u);
  EXPECT_EQ(sockets[0].port, 18515);
  EXPECT_EQ(sockets[0].uid, 1000u);
}

TEST(Listeners, ASocketThatNoVisibleProcessHoldsIsAnotherUsers) {
  const auto others = listeners_of_others({{77001, 18515, 1000}, {77002, 7471, 2002}}, {77001});
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(name_of(others[0]), "a program of uid 2002");
  const Wanted wanted{7471, kOurs, ""};
  EXPECT_FALSE(is_wanted(others[0], wanted));
  EXPECT_EQ(hint_of(others, wanted),
            "\n  a program of uid 2002 listens on it; the TCP ports are the machine's: "
            "choose\n    another one.");
}

TEST(Listeners, ThoseInTheStateHavePortNodeAndProgram) {
  const Json state = Json::parse(R"json({"rdma_cm":[
    {"node":"node1","pid":812,"program":"rping","state":"listening","local":"0.0.0.0:7174"},
    {"node":"node1","pid":812,"program":"rping","state":"established","local":"0.0.0.0:7174"},
    {"node":"node1","pid":813,"program":"nc","state":"listening","local":"0.0.0.0:80","port_space":"SDP"},
    {"node":"node0","pid":9,"program":"ib","state":"listening","local":""},
    {"node":"node0","program":"echo","is_driver":true,"state":"listening","local":"[::]:99"}]})json");
  const auto found = rdma_listeners(state, kOurs);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].port, 7174);
  EXPECT_EQ(found[0].node, "node1");
  EXPECT_EQ(name_of(found[0]), "rping (pid 812)");
  EXPECT_EQ(found[0].how, "librdmacm");
  EXPECT_EQ(found[1].how, "TCP, streams");
  EXPECT_EQ(name_of(found[2]), "the driver echo");
}

TEST(Listeners, OnlyOneOfThisFabricAndNodeIsWanted) {
  const Wanted anywhere{18515, kOurs, ""};
  const Wanted on_node1{18515, kOurs, "node1"};
  EXPECT_TRUE(is_wanted(listener(18515, kOurs, "node0"), anywhere));
  EXPECT_FALSE(is_wanted(listener(18515, kOurs, "node0"), on_node1));
  EXPECT_TRUE(is_wanted(listener(18515, kOurs, "node1"), on_node1));
  EXPECT_FALSE(is_wanted(listener(18516, kOurs, "node1"), on_node1));
  EXPECT_FALSE(is_wanted(listener(18515, "/run/softib/two.sock", "node1"), anywhere));
  EXPECT_FALSE(is_wanted(listener(18515, "", ""), anywhere));
}

TEST(Listeners, AHintNamesWhoListensElsewhereElseTheOtherPorts) {
  const Wanted wanted{18515, kOurs, "node1"};
  EXPECT_EQ(hint_of({listener(18515, kOurs, "node0")}, wanted),
            "\n  server (pid 812) listens on it, but on node0.");
  EXPECT_EQ(hint_of({listener(18515, "/run/softib/two.sock", "node1")}, wanted),
            "\n  server (pid 812) listens on it, but on fabric \"two\".");
  EXPECT_EQ(hint_of({listener(18515, "", "")}, wanted),
            "\n  server (pid 812) listens on it, but does not run under `softib run`.");
  EXPECT_EQ(hint_of({listener(7, kOurs, "node0"), listener(8, "", "")}, wanted),
            "\n  Programs of this fabric listen on 7 on node0 (server).");
  EXPECT_EQ(hint_of({}, wanted), "\n  No program of this fabric listens on any port.");
}

}  // namespace
}  // namespace ib::softib
