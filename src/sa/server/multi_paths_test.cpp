// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths between several ports and several others.
#include "sa/records/multi_path_record.h"
#include "sa/test/server_fixture_test.h"

#include <utility>

namespace ib::sa {
namespace {

namespace component = multi_path_component;
constexpr std::uint64_t kCounts = component::kSgidCount | component::kDgidCount;

class MultiPathsTest : public SaTest {
 protected:
  MultiPathRecord between(std::vector<std::size_t> sources, std::vector<std::size_t> destinations) {
    MultiPathRecord wanted;
    wanted.sgid_count = static_cast<std::uint8_t>(sources.size());
    wanted.dgid_count = static_cast<std::uint8_t>(destinations.size());
    std::size_t next = 0;
    for (const std::size_t port : sources) wanted.gids[next++] = gid(port);
    for (const std::size_t port : destinations) wanted.gids[next++] = gid(port);
    return wanted;
  }
  Answer get_multi(std::uint64_t components, const MultiPathRecord& wanted) {
    return ask(0, method::kGetMulti, attribute::kMultiPathRecord, components, wanted);
  }
  std::vector<std::pair<int, int>> lids(const Answer& answer) {
    std::vector<std::pair<int, int>> all;
    for (const PathRecord& path : records<PathRecord>(answer)) {
      all.emplace_back(path.slid, path.dlid);
    }
    return all;
  }
};
using Lids = std::vector<std::pair<int, int>>;

TEST_F(MultiPathsTest, EachPairHasItsPathAndThoseThatShareNoPortComeFirst) {
  const Answer answer = get_multi(kCounts, between({0, 1}, {2, 3}));
  EXPECT_EQ(answer.method, method::kGetMultiResp);
  EXPECT_EQ(answer.stride, PathRecord::kSize);
  EXPECT_EQ(lids(answer), (Lids{{10, 30}, {20, 40}, {10, 40}, {20, 30}}));
}

TEST_F(MultiPathsTest, NumbPathLimitsThemAll) {
  subnet.ports[0].lmc = 1;
  subnet.ports[2].lmc = 1;
  MultiPathRecord wanted = between({0, 1}, {2, 3});
  EXPECT_EQ(lids(get_multi(kCounts, wanted)).size(), 4u + 2 + 2 + 1);
  wanted.numb_path = 2;
  EXPECT_EQ(lids(get_multi(kCounts | component::kNumbPath, wanted)), (Lids{{10, 30}, {20, 40}}));
  wanted.numb_path = 0;
  EXPECT_EQ(get_multi(kCounts | component::kNumbPath, wanted).status, sa_status::kRequestInvalid);
}

TEST_F(MultiPathsTest, ComponentsChooseAsInAPathRecord) {
  subnet.ports[3].mtu = 3;
  subnet.ports[1].sl = 2;
  MultiPathRecord wanted = between({0, 1}, {2, 3});
  wanted.mtu = 3;
  wanted.mtu_selector = Selector::Greater;
  constexpr auto kMtu = component::kMtu | component::kMtuSelector;
  EXPECT_EQ(lids(get_multi(kCounts | kMtu, wanted)), (Lids{{10, 30}, {20, 30}}));
  wanted.sl = 2;
  EXPECT_EQ(lids(get_multi(kCounts | component::kSl, wanted)), (Lids{{20, 40}, {20, 30}}));
  wanted.service_id = 0x0102030405060708;
  const Answer marked = get_multi(kCounts | component::kServiceId, wanted);
  EXPECT_EQ(records<PathRecord>(marked).at(0).service_id, wanted.service_id);
}

TEST_F(MultiPathsTest, PortsOfOtherPartitionsHaveNone) {
  subnet.ports[1].pkeys = {0x8001};
  EXPECT_EQ(lids(get_multi(kCounts, between({0, 1}, {2}))), (Lids{{10, 30}}));
}

TEST_F(MultiPathsTest, ARequestWithoutEndsIsRefused) {
  EXPECT_EQ(get_multi(component::kSgidCount, between({0}, {1})).status,
            sa_status::kInsufficientComponents);
  EXPECT_EQ(get_multi(component::kDgidCount, between({0}, {1})).status,
            sa_status::kInsufficientComponents);
  EXPECT_EQ(get_multi(kCounts, between({0}, {})).status, sa_status::kRequestInvalid);
  MultiPathRecord wanted = between({0}, {1});
  wanted.dgid_count = 11;
  EXPECT_EQ(get_multi(kCounts, wanted).status, sa_status::kRequestInvalid) << "no room for twelve";
  wanted.dgid_count = 2;
  EXPECT_EQ(get_multi(kCounts, wanted).status, sa_status::kInvalidGid);
}

}  // namespace
}  // namespace ib::sa
