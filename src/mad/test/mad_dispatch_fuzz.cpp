// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MADs of any content: each request goes to the agent that registered for it or is refused, and a
// response to nobody but the transaction that it fits.
#include "base/assert.h"
#include "base/fuzz_input.h"
#include "mad/agent_table.h"
#include "mad/class_port_info.h"
#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"
#include "mad/transactions.h"

#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace ib;
using namespace ib::mad;

constexpr std::uint8_t kClasses[] = {0x03, 0x04, 0x06, 0x07, 0x09, 0x31, 0x4f, 0x01, 0x81};
constexpr std::uint32_t kOuis[] = {0, 0x0002c9, 0x001405};

AgentKey key(FuzzInput& input) {
  AgentKey key;
  key.mgmt_class = input.one_of(kClasses);
  key.class_version = 1 + input.byte() % 2;
  key.oui = input.one_of(kOuis);
  for (int methods = input.byte() % 4; methods > 0; --methods) key.methods.add(input.byte() % 8);
  if (input.byte() % 3 == 0) key.port = input.byte() % 2;
  return key;
}

// Mostly near what is registered.
Mad mad_of(FuzzInput& input) {
  Mad mad{};
  const bool is_likely = input.byte() % 4 != 0;
  MadHeader header;
  header = {1,
            input.one_of(kClasses),
            static_cast<std::uint8_t>(1 + input.byte() % 2),
            static_cast<std::uint8_t>(input.byte() % 8 | (input.byte() % 2 << 7)),
            0,
            0,
            input.number(1) << 32 | input.byte() % 4u,
            1,
            0,
            0};
  std::memcpy(mad.data(), &header, sizeof header);
  if (is_likely && has_oui(header.mgmt_class)) {
    const std::uint32_t oui = input.one_of(kOuis);
    mad[kOuiOffset] = std::byte(oui >> 16);
    mad[kOuiOffset + 1] = std::byte(oui >> 8 & 0xff);
    mad[kOuiOffset + 2] = std::byte(oui & 0xff);
  }
  if (!is_likely) {
    for (std::size_t i = 0; i < 64; ++i) mad[i] = std::byte{input.byte()};
  }
  return mad;
}

void check(const AgentTable& table, const Transactions& transactions, std::uint32_t port,
           const Mad& mad) {
  MadHeader header;
  std::memcpy(&header, mad.data(), sizeof header);
  const AgentTable::Match match = table.match(port, mad);
  IB_ASSERT((match.agent != 0) == (match.refusal == mad_status::kOk));
  if (match.agent != 0) {
    const AgentKey& found = *table.find(match.agent);
    IB_ASSERT(found.mgmt_class == header.mgmt_class && found.methods.has(header.method));
    IB_ASSERT(!found.port || *found.port == port);
    IB_ASSERT(!is_response(header.method) && is_general_class(header.mgmt_class));
    IB_ASSERT(!has_oui(header.mgmt_class) || found.oui == oui_of(mad));
  }
  IB_ASSERT(attribute_offset(header.mgmt_class) + sizeof(ClassPortInfo) <= kMadSize);
  IB_ASSERT(!is_rmpp(mad) || has_rmpp(header.mgmt_class));
  const Peer from{port, 5, 1, {}};
  if (!transactions.is_awaited(header.transaction_id, header.mgmt_class, from)) return;
  const Transactions::Request& request = *transactions.find(header.transaction_id);
  IB_ASSERT(request.mgmt_class == header.mgmt_class && request.peer.is(from));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  AgentTable table(8);
  Transactions transactions({16, 8}, 1);
  std::vector<AgentId> agents;
  Instant now{std::chrono::seconds(1)};
  while (!input.is_over()) {
    const std::uint8_t what = input.byte();
    std::string reason;
    if (what < 40) {
      const auto id = table.add(key(input), "agent", reason);
      if (id) agents.push_back(*id);
      IB_ASSERT(id.has_value() != !reason.empty());
    } else if (what < 60 && !agents.empty()) {
      const AgentId agent = agents[input.byte() % agents.size()];
      table.remove(agent);
      for (const TransactionId id : transactions.end_all(agent)) IB_ASSERT(agent_of(id) == agent);
    } else if (what < 100) {
      const auto begun = transactions.begin({static_cast<AgentId>(input.byte()),
                                             input.one_of(kClasses),
                                             {input.byte() % 2u, 5, 1, {}},
                                             std::chrono::milliseconds(input.byte()),
                                             input.byte() % 4u},
                                            now);
      if (begun && input.byte() % 4 == 0) transactions.suspend(*begun);
    } else if (what < 110) {
      now += std::chrono::milliseconds(input.byte());
      while (transactions.poll(now)) {}
    } else {
      check(table, transactions, input.byte() % 2, mad_of(input));
    }
    IB_ASSERT(transactions.size() <= 16 && table.size() <= 8);
  }
  return 0;
}
