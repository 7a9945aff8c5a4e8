// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the fuzzer of this folder: valid requests of tools about the device tree (codes 10 to 15).
// They need no process, so every connection may send them.
#pragma once

#include "drivers/test/hostile_request_test.h"

namespace ib::drivers::test {

inline constexpr Shape kTreeRequests[] = {
    {Code::Devices},         {Code::ListNames}, {Code::ChangeHca},
    {Code::ChangePartition}, {Code::SetPower},  {Code::ChangeDriver},
};

inline std::vector<std::byte> sensible_tree_request(const Shape& shape, FuzzInput& in) {
  const auto node = [&in] { return in.one_of({"node0", "node1", "", "node2"}); };
  const auto hca = [&in] { return in.one_of({"softib0", "softib0", "softib1", ""}); };
  switch (number_of(shape.code)) {
    case number_of(Code::ListNames): {
      control::ViewIn out;
      put_text(out.node, node());
      put_text(out.path, in.one_of({"\\Device", "\\Device\\ibal", "\\", "\\Nothing"}));
      return bytes_of(out);
    }
    case number_of(Code::ChangeHca): {
      using control::HcaAction;
      control::ChangeHcaIn out;
      put_text(out.node, node());
      put_text(out.ca, hca());
      out.action = in.one_of({HcaAction::Add, HcaAction::Add, HcaAction::Remove, HcaAction::Eject});
      return bytes_of(out);
    }
    case number_of(Code::ChangePartition): {
      control::ChangePartitionIn out;
      put_text(out.node, node());
      put_text(out.ca, hca());
      out.port = 1 + in.byte() % 2u;
      out.pkey = static_cast<std::uint16_t>(0x8001 + in.byte() % 3);
      out.remove = in.byte() % 2;
      put_text(out.name, in.one_of({"ione", "itwo", "eth"}));
      return bytes_of(out);
    }
    case number_of(Code::SetPower): {
      using control::PowerState;
      control::SetPowerIn out;
      put_text(out.node, node());
      out.state = in.one_of({PowerState::Working, PowerState::Working, PowerState::Sleep,
                             PowerState::Hibernate, PowerState::Shutdown});
      return bytes_of(out);
    }
    case number_of(Code::ChangeDriver): {
      control::ChangeDriverIn out;
      put_text(out.name, in.one_of({"ib_bus", "soft_hca", "nothing"}));
      out.unload = in.byte() % 2;
      return bytes_of(out);
    }
    default: return {};
  }
}

}  // namespace ib::drivers::test
