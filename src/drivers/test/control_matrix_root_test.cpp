// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations on file 0 (control_matrix_ops_test.h).
#include "drivers/soft_hca/events.h"
#include "drivers/test/control_matrix_ops_test.h"

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using verbs::EventType;
using verbs::QpType;

using W = MatrixWorld;
using Made = std::unique_ptr<Call>;

ViewIn view_in(const char* path) {
  ViewIn in;
  put_text(in.path, path);
  return in;
}

// On a connection of its own: the connections of the processes are attached.
Made on_new_connection(W& w, Made call, io::Major major) {
  call->client.session = 20;
  call->client.pid = 20;
  call->opened = std::make_unique<io::FileObject>(w.root->device(), 0, call->client, nullptr);
  call->file = call->opened.get();
  call->major = major;
  return call;
}

Made attach(W& w) {
  AttachIn in;
  put_text(in.node, "node0");
  put_text(in.program, "late");
  auto call = call_of<AttachOut>(in);
  call->file = &w.tool.zero();
  return call;
}

Made disconnect(W& w) {
  w.p.cq();
  auto call = call_of(Nothing{});
  call->major = io::Major::Close;
  call->file = &w.p.zero();
  return call;
}

QpOut make_qp(W& w) {
  const auto made = w.p.qp(QpType::Rc, w.p.pd(), w.p.cq());
  w.p.good(made);
  return made.out;
}

RaiseEventIn event_of(const QpOut& qp) {
  return {EventObject::Qp, hca::qp_index(qp.qpn), qp.generation, EventType::CommEst};
}

GenerationIn itself(W& w) {
  return {w.p.attach.slot, w.p.attach.slot_generation};
}

Made wait_for_event(W& w) {
  return call_of<EventOut>(itself(w));
}

Made wait_for_event_elsewhere(W& w) {
  auto call = wait_for_event(w);
  call->file = &w.second.zero();
  return call;
}

Made take_event(W& w) {
  w.p.good(w.p.root_call(Code::RaiseEvent, event_of(make_qp(w))));
  return wait_for_event(w);
}

// Raises an event that has nothing to do with any request of `p`.
void raise_something(W& w) {
  push_event(w.core(), *w.core().by_slot[w.p.attach.slot],
             {EventType::ClientReregister, EventObject::Port, 1, 1, 0});
}

Made trace_error(W& w) {
  TraceErrorIn in;
  in.qp_index = hca::qp_index(make_qp(w).qpn);
  in.status = verbs::WcStatus::RemAccessErr;
  in.cause = Cause::RemoteKeyUnknown;
  return call_of(in);
}

std::uint32_t make_channel(W& w) {
  return w.p.good(w.p.root_call(Code::CreateChannel));
}

Reply<BackingOut> make_backing(W& w) {
  const auto made = w.p.root_call<BackingOut>(Code::CreateBacking, BackingIn{8192});
  w.p.good(made);
  return made;
}

Made get_channel(W& w) {
  const std::uint32_t channel = make_channel(w);
  return call_of(
      GenerationIn{control::index_of(channel), w.core().channels.find_handle(channel)->generation});
}

Made get_backing(W& w) {
  const auto made = make_backing(w);
  return call_of<BackingOut>(GenerationIn{control::index_of(made.handle), made.out.generation});
}

Made set_port(W&) {
  SetPortIn in;
  put_text(in.node, "node0");
  put_text(in.ca, "softib0");
  in.port = 1;
  return call_of(in);
}

Made set_addresses(W&) {
  SetAddressesIn in;
  put_text(in.node, "node0");
  return call_of(in);
}

Made set_ip_interface(W& w) {
  SetIpInterfaceIn in;
  put_text(in.name, "ib0");
  in.node_guid = w.fabric.nodes()[0].hcas[0].node_guid;
  in.port = 1;
  in.pkey = 0xffff;
  return call_of(in);
}

Made change_hca(HcaAction action, const char* name = "softib0") {
  return call_of<CaName>(W::hca_in(action, name));
}

template <class In>
void ask_and_wait(W& w, Code code, const In& in) {
  EXPECT_EQ(w.tool.root_call<CaName>(code, in).status, Status::Ok);
}

constexpr Op kOperations[] = {
    {Code::Ping, "connect (Create)",
     [](W& w) { return on_new_connection(w, call_of(Nothing{}), io::Major::Create); }},
    {Code::Ping, "disconnect (Close)", disconnect},
    {Code::Status, "Status", [](W&) { return call_of(Nothing{}); }},
    {Code::Resources, "Resources", [](W&) { return call_of(Nothing{}); }},
    {Code::TraceRead, "TraceRead", [](W&) { return call_of(TraceReadIn{0}); }},
    {Code::ViewStat, "ViewStat",
     [](W&) { return call_of<ViewStatOut>(view_in("/sys/class/infiniband")); }},
    {Code::ViewOpen, "ViewOpen",
     [](W&) { return call_of<ViewStatOut>(view_in("/sys/class/infiniband_verbs/abi_version")); }},
    {Code::ViewList, "ViewList", [](W&) { return call_of(view_in("/sys/class/infiniband")); }},
    {Code::SetPort, "SetPort", set_port},
    {Code::Devices, "Devices", [](W&) { return call_of(Nothing{}); }},
    {Code::ListNames, "ListNames", [](W&) { return call_of(view_in("\\Device")); }},
    {Code::ChangeHca, "ChangeHca (Add)", [](W&) { return change_hca(HcaAction::Add, ""); }},
    {Code::ChangeHca, "ChangeHca (Remove)",
     [](W& w) {
       w.close_file_of_p();
       return change_hca(HcaAction::Remove);
     }},
    {Code::ChangeHca, "ChangeHca (Remove, in use)",
     [](W&) { return change_hca(HcaAction::Remove); }},
    {Code::ChangeHca, "ChangeHca (Eject)", [](W&) { return change_hca(HcaAction::Eject); }},
    {Code::ChangePartition, "ChangePartition (add)",
     [](W&) { return call_of(W::partition_in(0x8001, "ione", false)); }},
    {Code::ChangePartition, "ChangePartition (remove)",
     [](W& w) {
       ask_and_wait(w, Code::ChangePartition, W::partition_in(0x8001, "ione", false));
       return call_of(W::partition_in(0x8001, "", true));
     }},
    {Code::SetPower, "SetPower (Sleep)",
     [](W&) { return call_of(W::power_in(PowerState::Sleep)); }},
    {Code::SetPower, "SetPower (Hibernate)",
     [](W&) { return call_of(W::power_in(PowerState::Hibernate)); }},
    {Code::SetPower, "SetPower (Working)",
     [](W& w) {
       ask_and_wait(w, Code::SetPower, W::power_in(PowerState::Sleep));
       w.is_asleep = true;
       return call_of(W::power_in(PowerState::Working));
     }},
    {Code::SetPower, "SetPower (Shutdown)",
     [](W&) { return call_of(W::power_in(PowerState::Shutdown, "")); }},
    {Code::ChangeDriver, "ChangeDriver (unload)",
     [](W& w) {
       w.close_files();
       return call_of(W::driver_in("ib_bus", true));
     }},
    {Code::ChangeDriver, "ChangeDriver (unload, in use)",
     [](W&) { return call_of(W::driver_in("ib_bus", true)); }},
    {Code::ChangeDriver, "ChangeDriver (load)",
     [](W& w) {
       w.close_files();
       ask_and_wait(w, Code::ChangeDriver, W::driver_in("ib_bus", true));
       return call_of(W::driver_in("ib_bus", false));
     }},
    {Code::Attach, "Attach", attach},
    {Code::WaitEvent, "WaitEvent (there is one)", take_event},
    {Code::WaitEvent, "WaitEvent (none yet)", wait_for_event, raise_something},
    {Code::WaitEvent, "WaitEvent (over another connection)", wait_for_event_elsewhere,
     raise_something},
    {Code::RaiseEvent, "RaiseEvent", [](W& w) { return call_of(event_of(make_qp(w))); }},
    {Code::TraceError, "TraceError", trace_error},
    {Code::CreateChannel, "CreateChannel", [](W&) { return call_of(Nothing{}); }},
    {Code::DestroyChannel, "DestroyChannel",
     [](W& w) {
       return call_of(IndexIn{make_channel(w), 0});
     }},
    {Code::GetChannel, "GetChannel", get_channel},
    {Code::CreateBacking, "CreateBacking", [](W&) { return call_of<BackingOut>(BackingIn{8192}); }},
    {Code::DestroyBacking, "DestroyBacking",
     [](W& w) {
       return call_of(IndexIn{make_backing(w).handle, 0});
     }},
    {Code::GetBacking, "GetBacking", get_backing},
    {Code::SetAddresses, "SetAddresses", set_addresses},
    {Code::SetIpInterface, "SetIpInterface", set_ip_interface},
};

}  // namespace

std::span<const Op> root_operations() {
  return kOperations;
}

}  // namespace ib::drivers::test
