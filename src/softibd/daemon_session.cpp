// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_session.h"

#include "al/service_file.h"
#include "base/buffers.h"
#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace ib::softib {

namespace control = verbs::control;
using control::Code;

// Of a request. They are used again, since the allocator takes longer for blocks of this size than
// most requests.
struct DaemonSession::Buffers {
  // Every output structure fits; longer ones travel as a file.
  static constexpr std::size_t kOutputBytes = 4096;
  // Of requests of services, of which many wait.
  static constexpr std::size_t kServiceOutputBytes = 512;
  static_assert(sizeof(control::CmRequest) <= kServiceOutputBytes &&
                sizeof(control::CmReply) <= kServiceOutputBytes &&
                sizeof(control::CmEvent) <= kServiceOutputBytes &&
                sizeof(control::CmQueryOut) <= kServiceOutputBytes &&
                sizeof(control::SaEvent) <= kServiceOutputBytes);

  explicit Buffers(std::size_t output_bytes) : reply(sizeof(control::ReplyHeader) + output_bytes) {}
  std::span<std::byte> output() { return std::span(reply).subspan(sizeof(control::ReplyHeader)); }

  std::vector<std::byte> input;
  std::vector<std::byte> reply;
};

// An IRP with its buffers, and what the answer needs.
struct DaemonSession::Request {
  io::Irp irp;
  DaemonSession* session = nullptr;
  io::ClientFile* file = nullptr;  // that `irp` goes to
  Code code = Code::Ping;
  std::uint64_t tag = 0;
  bool wants_answer = true;      // false: the session's own Create and Close
  Request* next = nullptr;       // goes to the file that this one, or the one before, opens
  os::NativeHandle answer_to{};  // of an umad file: a socket instead of the connection
  std::unique_ptr<Buffers> buffers;
  bool is_of_service = false;                   // it goes to a file of a service
  std::unique_ptr<services::ServiceUser> user;  // of one that opens such a file
  std::list<Request>::iterator self;
};

namespace {

// The power manager has switched everything off; softibd remains.
bool is_shutdown(const io::Irp& irp) {
  if (irp.code != static_cast<std::uint32_t>(Code::SetPower)) return false;
  const auto in = irp.input<control::SetPowerIn>();
  return in && in->state == control::PowerState::Shutdown;
}

// `softib run` says on which node a program is going to run, and becomes that program.
std::optional<std::string> node_of_run(const io::Irp& irp) {
  if (irp.code != static_cast<std::uint32_t>(Code::SetAddresses)) return std::nullopt;
  const auto in = irp.input<control::SetAddressesIn>();
  return in ? std::optional(printable(in->node)) : std::nullopt;
}

}  // namespace

DaemonSession::DaemonSession(SessionHost& host, std::unique_ptr<os::ServerConnection> connection,
                             std::uint64_t id)
    : host_(host), connection_(std::move(connection)), rdma_cm_(*connection_), umad_(*connection_) {
  const os::PeerProcess peer = connection_->peer();
  client_ = {id, peer.pid, peer.uid, {}};
}

DaemonSession::~DaemonSession() {
  IB_ASSERT(is_over());
}

DaemonSession::Request& DaemonSession::new_request(std::uint64_t tag, Code code) {
  Request& request = requests_.emplace_back();
  request.self = std::prev(requests_.end());
  request.session = this;
  request.tag = tag;
  request.code = code;
  request.irp.requestor_mode = io::RequestorMode::User;
  request.irp.code = static_cast<std::uint32_t>(code);
  request.is_of_service = control::is_of_service_file(request.irp.code);
  if (request.is_of_service) {
    ++services_.requests;
    request.buffers = std::make_unique<Buffers>(Buffers::kServiceOutputBytes);
  } else {
    request.buffers =
        spare_ != nullptr ? std::move(spare_) : std::make_unique<Buffers>(Buffers::kOutputBytes);
  }
  request.irp.out = request.buffers->output();
  return request;
}

void DaemonSession::start() {
  connection_->pause();
  connection_->start(*this);
  Request& request = new_request(0, Code::Ping);
  request.wants_answer = false;
  send_create(request, host_.root_device(), 0, nullptr);
}

void DaemonSession::on_message(os::ServerMessage message) {
  const ParsedRequest parsed =
      parse_request(message.bytes, {message.truncated, message.handles_lost});
  if (!parsed.answerable) return connection_->close();
  if (parsed.status != Status::Ok) {
    connection_->send(make_error_reply(parsed.tag, parsed.status, parsed.reason));
    return;
  }
  carry_out(parsed, std::move(message.handles));
}

void DaemonSession::carry_out(const ParsedRequest& parsed,
                              std::array<os::NativeHandle, 2> handles) {
  Request& request = new_request(parsed.tag, parsed.code);
  request.buffers->input.assign(parsed.input.begin(), parsed.input.end());
  request.irp.in = request.buffers->input;
  std::move(handles.begin(), handles.begin() + handles_of(parsed.code),
            request.irp.in_handles.begin());
  if (is_full()) connection_->pause();

  if (const auto node = node_of_run(request.irp)) run_node_ = *node;
  if (carry_out_here(request)) return;
  if (request.is_of_service) return of_service(request, parsed.file);
  io::ClientFile* file = files_.find(parsed.file);
  if (file != nullptr && dispatch(request, *file)) return;
  fail(request, Status::NotFound, fmt::format("file {} is not open", parsed.file));
}

// Executes the codes that concern softibd itself and its files. Returns false if the request is for
// a driver.
bool DaemonSession::carry_out_here(Request& request) {
  if (request.code == Code::Ping) {
    finish(request);
  } else if (request.code == Code::Status) {
    status(request);
  } else if (control::is_sm(request.irp.code)) {
    subnet_managers(request);
  } else if (request.code == Code::Keep) {
    keep(request);
  } else if (request.code == Code::Shutdown) {
    finish(request);
    host_.shut_down(fmt::format("pid {}", client_.pid));
  } else if (request.code == Code::OpenRdmaCm || request.code == Code::RdmaCm) {
    rdma_cm(request);
  } else if (control::is_umad(request.irp.code)) {
    umad(request);
  } else if (control::is_stream(request.irp.code)) {
    stream(request);
  } else if (request.irp.code == static_cast<std::uint32_t>(control::ServiceCode::Open)) {
    open_service(request);
  } else if (request.code == Code::OpenMailbox) {
    open_mailbox(request);
  } else if (request.code == Code::Open) {
    open_file(request);
  } else if (request.code == Code::Close) {
    close_file(request);
  } else {
    return false;
  }
  return true;
}

void DaemonSession::keep(Request& request) {
  const auto in = request.irp.input<control::KeepIn>();
  if (!in) return fail(request, Status::Malformed, "Keep takes 8 bytes of input");
  if (in->keep == 0 && in->go_now != 0) {
    const std::string others = host_.needed_by();
    if (!others.empty()) return fail(request, Status::DeviceBusy, others);
    finish(request);
    return host_.shut_down(fmt::format("pid {}, and nobody else is here", client_.pid));
  }
  finish(request);
  host_.keep(in->keep != 0);
}

void DaemonSession::status(Request& request) {
  const auto in = request.irp.input<control::StatusIn>();
  if (!in && !request.irp.in.empty()) {
    return fail(request, Status::Malformed, "Status takes nothing, or 72 bytes of input");
  }
  std::string reason;
  auto text = host_.make_status(in ? &*in : nullptr, reason);
  if (!text) return fail(request, text.error(), reason);
  request.irp.out_handles[0] = *std::move(text);
  finish(request);
}

void DaemonSession::subnet_managers(Request& request) {
  const auto in = request.irp.input<control::SmIn>();
  if (!in) return fail(request, Status::Malformed, "Sm takes 8 bytes of input");
  std::string reason;
  auto text = host_.subnet_managers(*in, reason);
  if (!text) return fail(request, text.error(), reason);
  request.irp.out_handles[0] = *std::move(text);
  finish(request);
}

void DaemonSession::open_mailbox(Request& request) {
  std::string reason;
  auto file = connection_->open_mailbox(reason);
  if (!file) return fail(request, file.error(), reason);
  request.irp.out_handles[0] = *std::move(file);
  rdma_cm_.use_mailbox();
  finish(request);
}

// The first request of a session opens the file that it and the others go to.
void DaemonSession::rdma_cm(Request& request) {
  static_assert(sizeof(control::RdmaCmOut) + control::kMostRdmaCmAhead <= Buffers::kOutputBytes);
  io::DeviceObject* device = host_.rdma_cm_device();
  if (device == nullptr) return fail(request, Status::NotSupported, "no rdma_cm here");
  if (rdma_cm_.file() != 0 && opens_rdma_cm_ == nullptr) return send_to(request, rdma_cm_.file());
  if (opens_rdma_cm_ != nullptr) {
    Request** last = &opens_rdma_cm_->next;
    while (*last != nullptr) last = &(*last)->next;
    *last = &request;
    return;
  }
  rdma_cm_.set_file(files_.new_number());
  Request& create = new_request(0, Code::OpenRdmaCm);
  create.wants_answer = false;
  create.next = &request;
  opens_rdma_cm_ = &create;
  create.irp.parameters.set<services::rdma_cm::RdmaCmClient>(&rdma_cm_);
  send_create(create, *device, rdma_cm_.file(), &files_.find(0)->object());
}

// The file that they waited for is open, or is not.
void DaemonSession::go_on(Request& first, Status created, std::string_view reason) {
  opens_rdma_cm_ = nullptr;
  const std::uint32_t file = rdma_cm_.file();
  if (created != Status::Ok) rdma_cm_.set_file(0);
  for (Request* each = &first; each != nullptr;) {
    Request* const next = std::exchange(each->next, nullptr);
    created == Status::Ok ? send_to(*each, file) : fail(*each, created, reason);
    each = next;
  }
}

// To a device file of the session.
void DaemonSession::send_to(Request& request, std::uint32_t number) {
  io::ClientFile* file = files_.find(number);
  if (file != nullptr && dispatch(request, *file)) return;
  fail(request, Status::Disconnected, "the device is being closed");
}

// An open sends Create, the others go to the file that it has made.
void DaemonSession::umad(Request& request) {
  std::string reason;
  const bool opens = SessionUmad::opens(request.irp);
  const Status status = umad_.take(request.irp, request.buffers->input, reason);
  if (!opens) request.answer_to = SessionUmad::take_answer_socket(request.irp);
  if (status != Status::Ok) return fail(request, status, reason);
  if (!opens) return send_to(request, umad_.file());
  io::DeviceObject* device = host_.umad_device();
  if (device == nullptr) return fail(request, Status::NotSupported, "no umad devices here");
  const std::uint32_t number = files_.new_number();
  umad_.set_file(number);
  connection_->expect_many();
  request.irp.parameters.set<services::UmadReader>(&umad_);
  send_create(request, *device, number, &files_.find(0)->object());
}

// Requests of the process itself, file 0, to another device: they end with it.
void DaemonSession::stream(Request& request) {
  io::DeviceObject* device = host_.stream_device();
  if (device == nullptr) return fail(request, Status::NotSupported, "no streams here");
  if (client_.node.empty()) {
    return fail(request, Status::InvalidState, "Attach comes first: it says on which node");
  }
  io::ClientFile* zero = files_.find(0);
  if (zero == nullptr || !files_.begin(*zero, request.irp)) {
    return fail(request, Status::Disconnected, "the process is ending");
  }
  request.file = zero;
  io::call_driver(*device, request.irp.start(&on_request_done, &request));
}

// A file on the device of a service; the device gets what it gets from a driver, and who it is.
void DaemonSession::open_service(Request& request) {
  const auto in = request.irp.input<control::OpenServiceIn>();
  if (!in) return fail(request, Status::Malformed, "OpenService takes 16 bytes of input");
  std::erase_if(services_.files,
                [this](std::uint32_t number) { return !files_.all().contains(number); });
  if (services_.files.size() >= control::kMostServiceFiles) {
    return fail(
        request, Status::InsufficientResources,
        fmt::format("a connection has at most {} files of services", control::kMostServiceFiles));
  }
  std::string reason;
  Result<ProgramService> found = host_.service(*in, client_, reason);
  if (!found) return fail(request, found.error(), reason);
  if (services_.process != 0 && services_.process != found->process) {
    return fail(request, Status::InvalidParameter, "a connection has services of one process");
  }
  services_.process = found->process;
  al::ServiceOpenIn open;
  open.ca_index = in->ca_index;
  const auto bytes = bytes_of(open);
  request.buffers->input.assign(bytes.begin(), bytes.end());
  request.irp.in = request.buffers->input;
  request.user = std::make_unique<services::ServiceUser>(std::move(found->user));
  request.irp.parameters.set(request.user.get());
  const std::uint32_t number = files_.new_number();
  services_.files.insert(number);
  connection_->expect_many();
  send_create(request, *found->device, number, &files_.find(0)->object());
}

void DaemonSession::of_service(Request& request, std::uint32_t number) {
  if (services_.requests > control::kMostServiceRequests) {
    return fail(request, Status::InsufficientResources,
                fmt::format("{} requests of this connection wait", control::kMostServiceRequests));
  }
  io::ClientFile* file = services_.files.contains(number) ? files_.find(number) : nullptr;
  if (file != nullptr && dispatch(request, *file)) return;
  fail(request, Status::NotFound, fmt::format("file {} is not open, or of no service", number));
}

void DaemonSession::on_look(bool last) {
  io::ClientFile* file = files_.find(rdma_cm_.file());
  if (file != nullptr && file->is_open())
    services::rdma_cm::RdmaCmDevice::look(file->object(), last);
}

void DaemonSession::on_drained() {
  io::ClientFile* file = umad_.file() != 0 ? files_.find(umad_.file()) : nullptr;
  if (file != nullptr && file->is_open()) services::UmadDevice::deliver(file->object());
}

// Returns false if the file is not open.
bool DaemonSession::dispatch(Request& request, io::ClientFile& file) {
  if (!files_.begin(file, request.irp)) return false;
  request.file = &file;
  host_.send_down(request.irp.start(&on_request_done, &request));
  return true;
}

void DaemonSession::open_file(Request& request) {
  const auto in = request.irp.input<control::OpenIn>();
  if (!in) return fail(request, Status::Malformed, "Open takes a path of 128 bytes");
  if (client_.node.empty())
    return fail(request, Status::InvalidState, "Attach comes before Open: it says on which host");
  if (files_.size() > kMaxFiles) {  // file 0 is not one of them
    return fail(request, Status::InsufficientResources,
                fmt::format("a session has at most {} open files", kMaxFiles));
  }
  std::string reason;
  const Result<io::DeviceObject*> device = host_.resolve(client_.node, printable(in->path), reason);
  if (!device) return fail(request, device.error(), reason);
  send_create(request, **device, files_.new_number(), &files_.find(0)->object());
}

void DaemonSession::send_create(Request& request, io::DeviceObject& device, std::uint32_t number,
                                io::FileObject* process) {
  auto file = std::make_unique<io::ClientFile>(device, number, client_, process);
  request.file = &files_.open(std::move(file), request.irp);
  host_.send_down(request.irp.start(&on_request_done, &request));
}

void DaemonSession::close_file(Request& request) {
  const auto in = request.irp.input<control::CloseIn>();
  if (!in) return fail(request, Status::Malformed, "Close takes 8 bytes of input");
  io::ClientFile* file = in->file == 0 ? nullptr : files_.find(in->file);
  if (file == nullptr)
    return fail(request, Status::NotFound, fmt::format("file {} is not open", in->file));
  host_.on_close_asked(file->object());
  send_close(request, *file);
}

// The session's own, at its end.
void DaemonSession::close_file(io::ClientFile& file) {
  Request& request = new_request(0, Code::Close);
  request.wants_answer = false;
  send_close(request, file);
}

// If not now, then after the last request that is under way (forget).
void DaemonSession::send_close(Request& request, io::ClientFile& file) {
  request.file = &file;
  request.irp.in = {};
  auto close = files_.close(file, request.irp.start(&on_request_done, &request));
  if (close) host_.send_down(*std::move(close));
}

void DaemonSession::on_request_done(io::Irp&, void* context) {
  auto& request = *static_cast<Request*>(context);
  request.session->finish(request);
}

// The request is over. Without a file it was never sent, and its IRP has no result.
void DaemonSession::finish(Request& request) {
  io::Irp& irp = request.irp;
  // A file cannot be half closed: the driver's status of Close does not matter.
  if (request.file == nullptr || irp.major == io::Major::Close) irp.status = Status::Ok;
  const bool ok = irp.status == Status::Ok;
  const bool opens = irp.major == io::Major::Create && request.file != nullptr;
  const bool opens_zero = opens && request.file->number() == 0;
  const bool opens_umad = opens && request.file->number() == umad_.file();
  const bool opens_own = opens_umad || request.next != nullptr;
  if (opens_umad && !ok) umad_.set_file(0);
  if (ok && opens && !opens_own) irp.information = request.file->number();
  if (ok && request.code == Code::Attach) host_.on_attached();
  if (request.wants_answer) answer(request);
  if (ok && is_shutdown(irp)) host_.shut_down(fmt::format("pid {}", client_.pid));
  Request* const next = std::exchange(request.next, nullptr);
  const std::string reason = next != nullptr ? irp.reason : std::string();
  const Status status = irp.status;
  forget(request);
  if (opens_zero && !ok) connection_->close();  // on_closed() follows
  if (opens_zero && ok && !files_.is_ending()) connection_->resume();
  if (next != nullptr) go_on(*next, status, reason);
  files_.go_on();
}

void DaemonSession::answer(Request& request) {
  const io::Irp& irp = request.irp;
  if (irp.status == Status::Ok) {
    const auto message =
        std::span(request.buffers->reply).first(sizeof(control::ReplyHeader) + irp.out_size);
    control::ReplyHeader header;
    header.tag = request.tag;
    header.information = irp.information;
    finish_reply(header, message);
    return umad_.send(request.irp, request.answer_to, message, std::move(request.irp.out_handles));
  }
  const std::string reason = irp.reason.empty() ? status_text(irp.status) : irp.reason;
  const auto output =
      request.buffers->output().first(request.is_of_service ? irp.out_size : std::size_t{0});
  umad_.send(request.irp, request.answer_to,
             make_error_reply(request.tag, irp.status, reason, output));
}

// For requests that did not get as far as a driver.
void DaemonSession::fail(Request& request, Status status, std::string_view reason) {
  umad_.send(request.irp, request.answer_to, make_error_reply(request.tag, status, reason));
  forget(request);
}

void DaemonSession::forget(Request& request) {
  // The Close of its file, if that waited for this request.
  auto close = request.file != nullptr ? files_.end(*request.file, request.irp) : std::nullopt;
  const bool was_full = is_full();
  if (request.is_of_service) {
    --services_.requests;
  } else {
    spare_ = std::move(request.buffers);
  }
  requests_.erase(request.self);
  if (!files_.is_ending() && was_full && !is_full()) connection_->resume();
  if (close) host_.send_down(*std::move(close));
}

void DaemonSession::end() {
  connection_->close();
}

void DaemonSession::on_closed() {
  if (io::ClientFile* zero = files_.find(0)) host_.disconnect(zero->object());
  files_.end();
  files_.go_on();
}

}  // namespace ib::softib
