// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the fuzzer of this folder: valid requests of tools about the device tree (codes 10 to 15)
// and the subnet. They need no process, so every connection may send them.
#pragma once

#include "drivers/test/hostile_request_test.h"
#include "verbs/control_topology.h"

namespace ib::drivers::test {

constexpr Code code_of(control::TopologyCode code) {
  return static_cast<Code>(code);
}

inline constexpr Shape kTreeRequests[] = {
    {Code::Devices},
    {Code::ListNames},
    {Code::ChangeHca},
    {Code::ChangePartition},
    {Code::SetPower},
    {Code::ChangeDriver},
    {code_of(control::TopologyCode::ChangeCable)},
    {code_of(control::TopologyCode::CableErrors)},
    {code_of(control::TopologyCode::ChangeSwitch)},
};

inline control::CableEnd sensible_end(FuzzInput& in) {
  control::CableEnd end;
  put_text(end.element, in.one_of({"node0", "node1/softib0", "hub", "hub2", "nothing", ""}));
  end.port = in.byte() % 4u;
  return end;
}

inline std::vector<std::byte> sensible_subnet_request(const Shape& shape, FuzzInput& in) {
  using control::CableAction;
  using control::SwitchAction;
  switch (number_of(shape.code)) {
    case number_of(code_of(control::TopologyCode::ChangeCable)): {
      control::ChangeCableIn out;
      out.action = in.one_of({CableAction::Add, CableAction::Add, CableAction::Remove,
                              CableAction::Down, CableAction::Up, CableAction::Show});
      out.width = 1u << in.byte() % 5u;
      out.speed = 1u << in.byte() % 8u;
      out.a = sensible_end(in);
      out.b = sensible_end(in);
      return bytes_of(out);
    }
    case number_of(code_of(control::TopologyCode::CableErrors)): {
      control::CableErrorsIn out;
      out.end = sensible_end(in);
      out.downed = in.byte() % 3u;
      out.physical = out.overrun = out.watchdog = in.byte();
      return bytes_of(out);
    }
    case number_of(code_of(control::TopologyCode::ChangeSwitch)): {
      control::ChangeSwitchIn out;
      put_text(out.name, in.one_of({"hub", "hub", "hub2", "node0"}));
      out.action = in.one_of({SwitchAction::Add, SwitchAction::Add, SwitchAction::Remove,
                              SwitchAction::Down, SwitchAction::Up});
      out.ports = in.byte() % 5u;
      return bytes_of(out);
    }
    default: return {};
  }
}

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
    default: return sensible_subnet_request(shape, in);
  }
}

}  // namespace ib::drivers::test
