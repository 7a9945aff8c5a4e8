// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaTest: a server over a FakeSubnet, and requests in one line.
#pragma once

#include "sa/records/components.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"
#include "sa/server/server.h"
#include "sa/test/fake_subnet_test.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace ib::sa {

class SaTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSmKey = 0x5a5a;

  explicit SaTest(ServerLimits limits = {}) : server(subnet, {kSmKey, 18, limits}) {}

  verbs::Gid gid(std::size_t port) const { return subnet.ports[port].gids[0]; }
  // A request of port `from`.
  template <class Record>
  Answer ask(std::size_t from, std::uint8_t method, std::uint16_t attribute,
             std::uint64_t components, const Record& record, std::uint64_t sm_key = 0) {
    const auto bytes = encode(record);
    Request request;
    request.lid = subnet.ports[from].lid;
    request.method = method;
    request.attribute = attribute;
    request.components = components;
    request.sm_key = sm_key;
    request.record = bytes;
    const std::optional<Answer> answer = server.handle(request, now);
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(Answer{});
  }
  template <class Record>
  static std::vector<Record> records(const Answer& answer) {
    std::vector<Record> all;
    const std::size_t stride = answer.stride != 0 ? answer.stride : stride_of(Record::kSize);
    for (std::size_t i = 0; i < answer.count; ++i) {
      all.push_back(decode_some<Record>(std::span(answer.bytes).subspan(i * stride)));
    }
    return all;
  }

  // Paths.
  Answer get_path(std::size_t from, std::uint64_t components, const PathRecord& wanted) {
    return ask(from, method::kGet, attribute::kPathRecord, components, wanted);
  }
  std::vector<PathRecord> path_table(std::size_t from, std::uint64_t components,
                                     const PathRecord& wanted) {
    return records<PathRecord>(
        ask(from, method::kGetTable, attribute::kPathRecord, components, wanted));
  }

  // Groups.
  static verbs::Gid mgid(std::uint8_t last) {
    verbs::Gid result{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
    result[15] = last;
    return result;
  }
  McMemberRecord membership(std::size_t port, const verbs::Gid& group,
                            std::uint8_t state = join_state::kFullMember) const {
    McMemberRecord record;
    record.mgid = group;
    record.port_gid = gid(port);
    record.join_state = state;
    record.pkey = 0xffff;
    record.qkey = 0x0b1b;
    return record;
  }
  Answer create(std::size_t port, const verbs::Gid& group) {
    return ask(port, method::kSet, attribute::kMcMemberRecord, mc_component::kToCreate,
               membership(port, group));
  }
  Answer join(std::size_t port, const verbs::Gid& group, std::uint8_t state) {
    return ask(port, method::kSet, attribute::kMcMemberRecord, mc_component::kToJoin,
               membership(port, group, state));
  }
  Answer leave(std::size_t port, const verbs::Gid& group, std::uint8_t state) {
    return ask(port, method::kDelete, attribute::kMcMemberRecord, mc_component::kToJoin,
               membership(port, group, state));
  }

  void take_down(std::size_t port) {
    subnet.ports[port].is_up = false;
    server.on_port_down(subnet.ports[port].gids, subnet.ports[port].pkeys);
  }
  void bring_up(std::uint32_t port) {
    subnet.ports[port].is_up = true;
    server.on_port_up(*subnet.port(port));
  }

  FakeSubnet subnet{4};
  Server server;
  Instant now{std::chrono::seconds(100)};
};

}  // namespace ib::sa
