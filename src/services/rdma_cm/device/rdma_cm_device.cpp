// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Create, Close and DeviceControl of rdma_cm: the buffers of OpenRdmaCm and RdmaCm in and out, the
// command that waits for an event, and the notices of events.
#include "services/rdma_cm/device/rdma_cm_device.h"

#include "base/printable.h"
#include "platform/brief_polling.h"
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/service/driver_listing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

using verbs::control::Code;
using verbs::control::kRdmaCmBytes;
using verbs::control::OpenRdmaCmIn;
using verbs::control::RdmaCmIn;
using verbs::control::RdmaCmNeed;
using verbs::control::RdmaCmOut;

RdmaCmOut output_of(const Service::Answer& answer) {
  namespace flag = verbs::control::rdma_cm_flag;
  RdmaCmOut out;
  out.result = -static_cast<std::int32_t>(answer.error);
  out.flags = (answer.is_drained ? flag::kDrained : 0) |
              (answer.is_old_file_drained ? flag::kOldFileDrained : 0);
  out.address = answer.address;
  IB_ASSERT(answer.data.size() <= out.bytes.size());
  out.size = static_cast<std::uint32_t>(answer.data.size());
  std::copy(answer.data.begin(), answer.data.end(), out.bytes.begin());
  out.need = static_cast<RdmaCmNeed>(answer.need);
  out.need_address = answer.need_address;
  out.need_size = answer.need_size;
  out.ahead_size = static_cast<std::uint32_t>(answer.ahead.size());
  return out;
}

// Lives as long as its file.
struct Notice {
  std::uint32_t file;
  RdmaCmClient& client;
};

}  // namespace

// GET_EVENT of a file without events, for a moment.
struct RdmaCmDevice::Waiting {
  // The program polls its mailbox for as long before it sleeps; then signals should reach it.
  static constexpr Duration kMost = platform::BriefPolling::kShortSleep;

  Waiting(std::uint32_t of, Instant end) : file(of), until(end) {}

  std::uint32_t file;
  Instant until;
  io::IrpQueue irp;  // empty once it was cancelled
};

struct RdmaCmDevice::Opened {
  RdmaCmDevice& device;
  RdmaCmClient& client;
  std::uint32_t number = 0;  // of the open rdma_cm; 0: it brings commands only
  std::shared_ptr<Waiting> waiting{};
};

RdmaCmDevice::RdmaCmDevice(const Parts& parts, ServiceOptions options)
    : fabric_(parts.fabric),
      executor_(parts.executor),
      service_(parts.fabric, parts.connector, parts.routes, std::move(options)),
      kernel_ports_(parts.fabric, service_.ports()),
      cm_(parts.cm),
      drivers_(parts.drivers) {
  cm_.set_ports(&kernel_ports_);
  driver_.on(io::Major::Create) = &RdmaCmDevice::create;
  driver_.on(io::Major::Close) = &RdmaCmDevice::close;
  driver_.on(io::Major::DeviceControl) = &RdmaCmDevice::control;
  device_.set_extension(this);
}

RdmaCmDevice::~RdmaCmDevice() {
  cm_.set_ports(nullptr);
}

void RdmaCmDevice::create(io::DeviceObject& device, io::IrpRef irp) {
  RdmaCmClient* const client = irp->parameters.get<RdmaCmClient>();
  if (client == nullptr) {
    return std::move(irp).fail(Status::InvalidParameter, "rdma_cm is opened for a program");
  }
  auto opened = std::make_unique<Opened>(Opened{device.extension<RdmaCmDevice>(), *client});
  irp->file->set_context(device, opened.release());
  std::move(irp).complete(Status::Ok);
}

void RdmaCmDevice::close(io::DeviceObject& device, io::IrpRef irp) {
  const std::unique_ptr<Opened> opened(irp->file->context<Opened>(device));
  irp->file->set_context<Opened>(device, nullptr);
  Service& service = opened->device.service_;
  if (const auto waited = std::move(opened->waiting)) service.end_wait(waited->file);
  if (const EventOffer* offer = opened->client.offer()) service.end_offer(*offer);
  if (opened->number != 0) service.close(opened->number);
  std::move(irp).complete(Status::Ok);
}

void RdmaCmDevice::control(io::DeviceObject& device, io::IrpRef irp) {
  Opened& opened = *irp->file->context<Opened>(device);
  const auto code = static_cast<Code>(irp->code);
  if (code == Code::OpenRdmaCm) return opened.device.open(opened, std::move(irp));
  if (code == Code::RdmaCm) return opened.device.command(opened, std::move(irp));
  std::move(irp).fail(Status::NotSupported, "rdma_cm has no such request");
}

void RdmaCmDevice::open(Opened& opened, io::IrpRef irp) {
  const auto in = irp->input<OpenRdmaCmIn>();
  if (!in) return std::move(irp).fail(Status::Malformed, "OpenRdmaCm takes 128 bytes of input");
  if (opened.number != 0) {
    return std::move(irp).fail(Status::InvalidState, "this connection is an open rdma_cm already");
  }
  const std::string name = printable(in->node);
  const fabric::Node* node = fabric_.find_node(name);
  if (node == nullptr) return std::move(irp).fail(Status::NotFound, "there is no node " + name);
  const auto notice = std::make_shared<Notice>(Notice{0, opened.client});
  // A program that is about to get the event needs no notice.
  const auto soon = [this, notice] {
    executor_.post_late([this, weak = std::weak_ptr(notice)] {
      const auto still = weak.lock();
      if (still == nullptr) return;
      if (const auto ahead = service_.give_notice(still->file)) {
        still->client.send_notice(std::as_bytes(std::span(ahead->data(), ahead->size())));
      }
    });
  };
  opened.number = service_.open(
      {index_of(fabric_, *node), irp->file->client().pid, printable(in->program), soon});
  notice->file = opened.number;
  std::move(irp).complete(Status::Ok, opened.number);
}

std::optional<RdmaCmDevice::Command> RdmaCmDevice::read_command(std::span<const std::byte> input) {
  Command in;
  if (input.size() < sizeof in.head || input.size() > sizeof(RdmaCmIn)) return std::nullopt;
  std::memcpy(&in.head, input.data(), sizeof in.head);
  const auto part = [input](std::size_t at, std::uint64_t size) {
    const std::size_t wanted = std::min<std::uint64_t>(size, kRdmaCmBytes);
    return at + wanted <= input.size() ? std::optional(input.subspan(at, wanted)) : std::nullopt;
  };
  const auto bytes = part(offsetof(RdmaCmIn, bytes), in.head.size);
  if (!bytes) return std::nullopt;
  in.bytes = *bytes;
  if (in.head.option_size == 0) return in;
  const auto option = part(offsetof(RdmaCmIn, option), in.head.option_size);
  if (!option) return std::nullopt;
  in.option = *option;
  return in;
}

void RdmaCmDevice::command(Opened& opened, io::IrpRef irp) {
  const auto in = read_command(irp->in);
  if (!in) {
    return std::move(irp).fail(
        Status::Malformed,
        "RdmaCm takes 24 to 1048 bytes of input, with all that it says is there");
  }
  if (irp->out.size() < sizeof(RdmaCmOut) + verbs::control::kMostRdmaCmAhead) {
    return std::move(irp).fail(Status::InvalidParameter, "the answer of RdmaCm needs more room");
  }
  const std::int32_t result = carry_out(*in, *irp, opened.client.offer());
  const bool may_wait = (in->head.flags & verbs::control::rdma_cm_in_flag::kMayWait) != 0;
  if (may_wait && result == -EAGAIN && await_event(opened, in->head.file)) {
    return opened.waiting->irp.park(std::move(irp));
  }
  std::move(irp).complete(Status::Ok);
}

// Writes the RdmaCmOut, and what follows it. Returns its result.
std::int32_t RdmaCmDevice::carry_out(const Command& in, io::Irp& irp, EventOffer* offer) {
  const auto as_data = [](std::span<const std::byte> bytes) {
    return std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  };
  Service::Request request;
  request.file = in.head.file;
  request.pid = irp.file->client().pid;
  request.from_file = in.head.from_file;
  request.size = in.head.size;
  request.bytes = as_data(in.bytes);
  request.option = as_data(in.option);
  request.takes_ahead = (in.head.flags & verbs::control::rdma_cm_in_flag::kTakesAhead) != 0;
  if (request.takes_ahead) request.offer = offer;
  const Service::Answer answer = service_.command(request);
  const RdmaCmOut out = output_of(answer);
  IB_ASSERT(sizeof out + answer.ahead.size() <= irp.out.size());
  std::memcpy(irp.out.data(), &out, sizeof out);
  if (!answer.ahead.empty()) {
    std::memcpy(irp.out.data() + sizeof out, answer.ahead.data(), answer.ahead.size());
  }
  irp.out_size = sizeof out + answer.ahead.size();
  return out.result;
}

// Returns false if it has to be answered now: while nobody looks, nothing would end the wait.
bool RdmaCmDevice::await_event(Opened& opened, std::uint32_t file) {
  if (opened.waiting != nullptr || !opened.client.is_watched()) return false;
  opened.waiting = std::make_shared<Waiting>(file, executor_.now() + Waiting::kMost);
  const auto on_event = [this, &opened, weak = std::weak_ptr(opened.waiting)] {
    executor_.post([this, &opened, weak] {
      if (weak.lock() != nullptr) end_wait(opened);
    });
  };
  if (!service_.await_event(file, on_event)) {
    opened.waiting.reset();
    return false;
  }
  opened.client.set_waiting(true);
  return true;
}

void RdmaCmDevice::look(io::FileObject& file, bool last) {
  Opened& opened = *file.context<Opened>(file.device());
  RdmaCmDevice& self = opened.device;
  const bool waits = opened.waiting != nullptr;
  if (waits && (last || self.executor_.now() >= opened.waiting->until)) self.end_wait(opened);
}

// Answers what waits: with an event, or that there is none.
void RdmaCmDevice::end_wait(Opened& opened) {
  const auto waited = std::move(opened.waiting);
  opened.client.set_waiting(false);
  auto irp = waited->irp.take();
  if (irp) static_cast<void>(carry_out(*read_command((*irp)->in), **irp, nullptr));
  service_.end_wait(waited->file);
  if (irp) std::move(*irp).complete(Status::Ok);
}

std::vector<Listing> RdmaCmDevice::list() {
  std::vector<Listing> all = service_.list();
  list_drivers(drivers_, executor_.now(), all);
  find_other_ends(all);
  return all;
}

}  // namespace ib::services::rdma_cm
