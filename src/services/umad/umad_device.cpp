// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Create, Close and DeviceControl of umadN and issmN: opens the node's queue pairs 1 first, then
// makes the file that has the agents (umad_file.cpp), or sets IsSM.
#include "services/umad/umad_device.h"

#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace ib::services {
namespace {

using verbs::control::OpenUmadIn;
using verbs::control::UmadCode;
using verbs::control::UmadDone;
using verbs::control::UmadKind;
using verbs::control::UmadMessage;

// The N-th port of a node's HCAs: unlike the names of HCAs, the numbers count ports.
const fabric::Port* port_of_unit(const fabric::Node& node, std::uint32_t unit) {
  for (const fabric::Hca& hca : node.hcas) {
    if (unit < hca.ports.size()) return hca.present ? &hca.ports[unit] : nullptr;
    unit -= static_cast<std::uint32_t>(hca.ports.size());
  }
  return nullptr;
}

std::optional<UmadItem> item_of(io::Irp& irp) {
  UmadItem item;
  if (irp.in.size() < sizeof item.message) return std::nullopt;
  std::memcpy(&item.message, irp.in.data(), sizeof item.message);
  const auto bytes = irp.in.subspan(sizeof item.message);
  item.bytes.assign(bytes.begin(), bytes.end());
  item.file = std::move(irp.in_handles[0]);
  const std::size_t whole = std::size_t{item.message.header_size} + item.message.size;
  const bool is_whole = item.file.valid() || item.bytes.size() == whole;
  return is_whole && item.bytes.size() <= verbs::control::kUmadMostShort
             ? std::optional(std::move(item))
             : std::nullopt;
}

template <class In>
UmadDone add_agent(UmadFile& file, const io::Irp& irp) {
  const auto in = irp.input<In>();
  UmadDone bad;
  bad.status = static_cast<std::uint32_t>(Status::InvalidParameter);
  return in ? file.add_agent(*in) : bad;
}

UmadDone remove_agent(UmadFile& file, const io::Irp& irp) {
  return file.remove_agent(irp.input<std::uint32_t>().value_or(verbs::control::kUmadAgents));
}

}  // namespace

struct UmadDevice::Opened {
  std::unique_ptr<UmadFile> umad;  // null: an issm
  std::uint32_t issm_port = 0;
  UmadReader* reader = nullptr;
};

// An open that waits for the services of softibd's own.
struct UmadDevice::Waiting {
  io::Irp irp;
  std::function<void()> open;
};

UmadDevice::UmadDevice(UmadService& service, Gsi& gsi, fabric::Fabric& fabric,
                       OpenOthers open_others)
    : service_(service), fabric_(fabric), openings_(gsi), open_others_(std::move(open_others)) {
  driver_.on(io::Major::Create) = &UmadDevice::create;
  driver_.on(io::Major::Close) = &UmadDevice::close;
  driver_.on(io::Major::DeviceControl) = &UmadDevice::control;
  device_.set_extension(this);
}

void UmadDevice::create(io::DeviceObject& device, io::IrpRef irp) {
  UmadDevice& self = device.extension<UmadDevice>();
  const auto in = irp->input<OpenUmadIn>();
  if (!in || irp->parameters.get<UmadReader>() == nullptr) {
    return std::move(irp).fail(Status::Malformed, "UmadOpen takes 144 bytes of input");
  }
  const std::string name = printable(in->node);
  const fabric::Node* node = self.fabric_.find_node(name);
  if (node == nullptr) return std::move(irp).fail(Status::NotFound, "there is no node " + name);
  const fabric::Port* port = port_of_unit(*node, in->unit);
  if (port == nullptr) {
    return std::move(irp).fail(Status::NotFound,
                               fmt::format("{} has no port {}", node->name, in->unit));
  }
  const std::uint32_t index = self.fabric_.graph().index_of(*port);
  if (in->kind == UmadKind::Issm) {
    const bool waits = (in->flags & verbs::control::umad_open_flag::kDoNotWait) == 0;
    return self.open_issm(index, waits, std::move(irp));
  }
  self.open_umad(*node, index, printable(in->program), std::move(irp));
}

// MADs can be sent when queue pairs 1 of the node are open; a port that cannot be opened loses
// them.
void UmadDevice::open_umad(const fabric::Node& node, std::uint32_t port, std::string program,
                           io::IrpRef irp) {
  auto waiting = std::make_shared<Waiting>();
  waiting->open = [this, port, program = std::move(program),
                   held = std::make_shared<std::optional<io::IrpRef>>(std::move(irp))] {
    begin_umad(port, program, *std::move(*held));
    held->reset();
  };
  openings_.open(node, [this, waiting](Status, const std::string&) {
    auto* const context = new std::shared_ptr<Waiting>(waiting);
    const auto done = [](io::Irp&, void* of) {
      const std::unique_ptr<std::shared_ptr<Waiting>> ended(
          static_cast<std::shared_ptr<Waiting>*>(of));
      (*ended)->open();
    };
    open_others_(waiting->irp.start(done, context));
  });
}

void UmadDevice::begin_umad(std::uint32_t port, std::string program, io::IrpRef irp) {
  if (irp->is_cancelled()) {
    return std::move(irp).fail(Status::Cancelled, "the program has ended");
  }
  auto opened = std::make_unique<Opened>();
  UmadReader* const reader = irp->parameters.get<UmadReader>();
  opened->umad = std::make_unique<UmadFile>(
      service_, *reader, port, UmadOpener{std::move(program), irp->file->client().pid});
  finish(std::move(opened), std::move(irp));
}

void UmadDevice::finish(std::unique_ptr<Opened> opened, io::IrpRef irp) {
  irp->file->set_context(device_, opened.release());
  std::move(irp).complete(Status::Ok, ++opened_);
}

// --- issm ---

void UmadDevice::open_issm(std::uint32_t port, bool waits, io::IrpRef irp) {
  Issm& issm = issms_[port];
  if (issm.opened != nullptr && issm.opened->reader->has_gone()) end_issm(port);
  if (issm.opened == nullptr) return begin_issm(port, std::move(irp));
  if (!waits) return std::move(irp).fail(Status::DeviceBusy, "a program has it open");
  issm.waiting.park(std::move(irp));
}

void UmadDevice::begin_issm(std::uint32_t port, io::IrpRef irp) {
  set_is_sm(port, true);
  auto opened = std::make_unique<Opened>();
  opened->issm_port = port;
  opened->reader = irp->parameters.get<UmadReader>();
  issms_[port].opened = opened.get();
  finish(std::move(opened), std::move(irp));
}

void UmadDevice::end_issm(std::uint32_t port) {
  issms_[port].opened = nullptr;
  set_is_sm(port, false);
  if (auto next = issms_[port].waiting.take()) begin_issm(port, *std::move(next));
}

void UmadDevice::set_is_sm(std::uint32_t index, bool on) {
  const fabric::Hca* hca = std::as_const(fabric_).hca_of(*fabric_.graph().port(index));
  if (set_is_sm_by_) set_is_sm_by_(*hca, *fabric_.graph().port(index), on);
}

// --- files ---

void UmadDevice::close(io::DeviceObject& device, io::IrpRef irp) {
  const std::unique_ptr<Opened> opened(irp->file->context<Opened>(device));
  irp->file->set_context<Opened>(device, nullptr);
  UmadDevice& self = device.extension<UmadDevice>();
  if (opened->umad == nullptr && self.issms_[opened->issm_port].opened == opened.get()) {
    self.end_issm(opened->issm_port);
  }
  std::move(irp).complete(Status::Ok);
}

void UmadDevice::deliver(io::FileObject& file) {
  const Opened* opened = file.context<Opened>(file.device());
  if (opened != nullptr && opened->umad != nullptr) opened->umad->deliver();
}

void UmadDevice::control(io::DeviceObject& device, io::IrpRef irp) {
  const Opened& opened = *irp->file->context<Opened>(device);
  if (opened.umad == nullptr) {
    return std::move(irp).fail(Status::NotSupported, "an issm device has no requests");
  }
  UmadFile& file = *opened.umad;
  UmadDone done;
  switch (static_cast<UmadCode>(irp->code)) {
    case UmadCode::EnablePkey: done = file.enable_pkey(); break;
    case UmadCode::Register: done = add_agent<UmadRegisterIn>(file, *irp); break;
    case UmadCode::Register2: done = add_agent<UmadRegister2In>(file, *irp); break;
    case UmadCode::Unregister: done = remove_agent(file, *irp); break;
    case UmadCode::Send: done = file.write(irp->in); break;
    case UmadCode::PutBack:
      if (auto item = item_of(*irp)) file.put_back(*std::move(item));
      break;
    case UmadCode::Open:
    default: return std::move(irp).fail(Status::NotSupported, "an umad device has no such request");
  }
  if (!irp->set_output(done)) {
    return std::move(irp).fail(Status::InvalidParameter, "the answer has 24 bytes");
  }
  std::move(irp).complete(Status::Ok);
}

}  // namespace ib::services
