// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace ib::softib {

namespace control = verbs::control;
using control::Code;

struct DaemonSession::File {
  File(io::DeviceObject& device, std::uint32_t number, io::Client& client, io::FileObject* process)
      : object(device, number, client, process) {}

  io::FileObject object;
  std::size_t pending = 0;           // requests that were sent to it
  Request* close_request = nullptr;  // waits for those; the number is not valid any more
};

// An IRP with its buffers, and what the answer needs.
struct DaemonSession::Request {
  // Every output structure fits; longer ones travel as a file.
  static constexpr std::size_t kOutputBytes = 4096;

  io::Irp irp;
  DaemonSession* session = nullptr;
  File* file = nullptr;  // that `irp` was sent to
  Code code = Code::Ping;
  std::uint64_t tag = 0;
  bool wants_answer = true;  // false: the session's own Close
  std::vector<std::byte> input;
  std::array<std::byte, kOutputBytes> output;
  std::unique_ptr<File> opening;  // Open: becomes a file if Create succeeds
  std::list<Request>::iterator self;
};

namespace {

// The power manager has switched everything off; softibd remains.
bool is_shutdown(const io::Irp& irp) {
  if (irp.code != static_cast<std::uint32_t>(Code::SetPower)) return false;
  const auto in = irp.input<control::SetPowerIn>();
  return in && in->state == control::PowerState::Shutdown;
}

}  // namespace

DaemonSession::DaemonSession(SessionHost& host, std::unique_ptr<os::ServerConnection> connection,
                             std::uint64_t id)
    : host_(host), connection_(std::move(connection)) {
  const os::PeerProcess peer = connection_->peer();
  client_ = {id, peer.pid, peer.uid, {}};
  zero_ = std::make_unique<File>(host_.root_device(), 0, client_, nullptr);
}

DaemonSession::~DaemonSession() {
  IB_ASSERT(state_ == State::Over);
}

DaemonSession::Request& DaemonSession::new_request(std::uint64_t tag, Code code) {
  Request& request = requests_.emplace_back();
  request.self = std::prev(requests_.end());
  request.session = this;
  request.tag = tag;
  request.code = code;
  request.irp.requestor_mode = io::RequestorMode::User;
  request.irp.code = static_cast<std::uint32_t>(code);
  request.irp.out = request.output;
  return request;
}

DaemonSession::File* DaemonSession::find_file(std::uint32_t number) {
  if (number == 0) return zero_.get();
  const auto found = files_.find(number);
  if (found == files_.end() || found->second->close_request != nullptr) return nullptr;
  return found->second.get();
}

void DaemonSession::start() {
  connection_->pause();
  connection_->start(*this);
  Request& request = new_request(0, Code::Ping);
  request.wants_answer = false;
  request.irp.major = io::Major::Create;
  request.file = zero_.get();
  ++zero_->pending;
  request.irp.file = &zero_->object;
  host_.send_down(request.irp.start(&on_created_zero, &request));
}

void DaemonSession::on_created_zero(io::Irp& irp, void* context) {
  auto& request = *static_cast<Request*>(context);
  DaemonSession& self = *request.session;
  const bool created = irp.status == Status::Ok;
  self.forget(request);
  if (self.state_ == State::Opening && created) {
    self.state_ = State::Open;
    self.connection_->resume();
    return;
  }
  if (!created) {
    self.zero_.reset();         // a file that was not created is not closed
    self.connection_->close();  // on_closed() follows
  }
  self.go_on_ending();
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
  request.input.assign(parsed.input.begin(), parsed.input.end());
  request.irp.in = request.input;
  std::move(handles.begin(), handles.begin() + handles_of(parsed.code),
            request.irp.in_handles.begin());
  if (requests_.size() >= kMaxPending) connection_->pause();

  if (carry_out_here(request)) return;
  if (File* file = find_file(parsed.file)) return dispatch(request, *file);
  fail(request, Status::NotFound, "file " + std::to_string(parsed.file) + " is not open");
}

// The codes that are about softibd itself and its files; false: the request is for a driver.
bool DaemonSession::carry_out_here(Request& request) {
  if (request.code == Code::Ping) {
    finish(request);
  } else if (request.code == Code::Status) {
    status(request);
  } else if (request.code == Code::Keep) {
    keep(request);
  } else if (request.code == Code::Shutdown) {
    finish(request);
    host_.shut_down("pid " + std::to_string(client_.pid));
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
    return host_.shut_down("pid " + std::to_string(client_.pid) + ", and nobody else is here");
  }
  finish(request);
  host_.keep(in->keep != 0);
}

void DaemonSession::status(Request& request) {
  std::string reason;
  auto text = host_.make_status(reason);
  if (!text) return fail(request, text.error(), reason);
  request.irp.out_handles[0] = *std::move(text);
  finish(request);
}

void DaemonSession::dispatch(Request& request, File& file) {
  request.file = &file;
  ++file.pending;
  request.irp.file = &file.object;
  host_.send_down(request.irp.start(&on_request_done, &request));
}

void DaemonSession::open_file(Request& request) {
  const auto in = request.irp.input<control::OpenIn>();
  if (!in) return fail(request, Status::Malformed, "Open takes a path of 128 bytes");
  if (client_.node.empty())
    return fail(request, Status::InvalidState, "Attach comes before Open: it says on which host");
  if (files_.size() >= kMaxFiles) {
    return fail(request, Status::InsufficientResources,
                "a session has at most " + std::to_string(kMaxFiles) + " open files");
  }
  std::string reason;
  const Result<io::DeviceObject*> device = host_.resolve(client_.node, printable(in->path), reason);
  if (!device) return fail(request, device.error(), reason);
  // Numbers are not reused soon, so that a use after Close is detected.
  do {
    ++last_number_;
  } while (last_number_ == 0 || files_.contains(last_number_));
  request.opening = std::make_unique<File>(**device, last_number_, client_, &zero_->object);
  request.irp.major = io::Major::Create;
  dispatch(request, *request.opening);
}

void DaemonSession::close_file(Request& request) {
  const auto in = request.irp.input<control::CloseIn>();
  if (!in) return fail(request, Status::Malformed, "Close takes 8 bytes of input");
  File* file = in->file == 0 ? nullptr : find_file(in->file);
  if (file == nullptr)
    return fail(request, Status::NotFound, "file " + std::to_string(in->file) + " is not open");
  host_.on_close_asked(file->object);
  file->close_request = &request;
  ++file->pending;  // it must live until this returns
  cancel_requests(file);
  --file->pending;
  file_became_free(*file);  // if not now, then Close follows the last request that is under way
}

// Those of one file, or all; a request that is completed by it may complete others.
void DaemonSession::cancel_requests(const File* of) {
  for (;;) {
    const auto next = std::find_if(requests_.begin(), requests_.end(), [of](const Request& r) {
      return r.file != nullptr && (of == nullptr || r.file == of) && !r.irp.is_cancelled();
    });
    if (next == requests_.end()) return;
    next->irp.cancel();
  }
}

void DaemonSession::send_close(Request& request, File& file) {
  request.irp.major = io::Major::Close;
  request.irp.in = {};
  dispatch(request, file);
}

void DaemonSession::on_request_done(io::Irp&, void* context) {
  auto& request = *static_cast<Request*>(context);
  request.session->finish(request);
}

// The request is over. Without a file it was never sent, and its IRP has no result.
void DaemonSession::finish(Request& request) {
  if (request.file == nullptr) request.irp.status = Status::Ok;
  const bool ok = request.irp.status == Status::Ok;
  if (request.opening != nullptr) {
    request.file = nullptr;
    --request.opening->pending;
    if (ok) {
      const std::uint32_t number = request.opening->object.number();
      request.irp.information = number;
      files_.emplace(number, std::move(request.opening));
    }
  }
  if (ok && request.code == Code::Attach) host_.on_attached();
  if (request.wants_answer) answer(request);
  if (ok && is_shutdown(request.irp)) host_.shut_down("pid " + std::to_string(client_.pid));
  if (request.irp.major == io::Major::Close) {
    // The driver's status is ignored: a file cannot be half closed.
    File* file = std::exchange(request.file, nullptr);
    if (file == zero_.get()) {
      zero_.reset();
    } else {
      files_.erase(file->object.number());
    }
  }
  forget(request);
  go_on_ending();
}

void DaemonSession::answer(Request& request) {
  const io::Irp& irp = request.irp;
  if (irp.status == Status::Ok) {
    const std::span<const std::byte> output(request.output.data(), irp.out_size);
    return connection_->send(make_reply(request.tag, irp.information, output),
                             std::move(request.irp.out_handles));
  }
  const std::string reason = irp.reason.empty() ? status_text(irp.status) : irp.reason;
  connection_->send(make_error_reply(request.tag, irp.status, reason));
}

// For requests that did not get as far as a driver.
void DaemonSession::fail(Request& request, Status status, std::string_view reason) {
  connection_->send(make_error_reply(request.tag, status, reason));
  forget(request);
}

void DaemonSession::forget(Request& request) {
  File* file = request.file;
  requests_.erase(request.self);
  if (state_ == State::Open && requests_.size() == kMaxPending - 1) connection_->resume();
  if (file != nullptr) {
    --file->pending;
    file_became_free(*file);
  }
}

void DaemonSession::file_became_free(File& file) {
  if (file.pending > 0 || file.close_request == nullptr) return;
  if (file.close_request->file == nullptr) send_close(*file.close_request, file);
}

void DaemonSession::end() {
  connection_->close();
}

void DaemonSession::on_closed() {
  IB_ASSERT(state_ == State::Opening || state_ == State::Open);
  const bool was_open = state_ == State::Open;
  state_ = State::Ending;
  if (was_open) host_.disconnect(zero_->object);
  in_end_step_ = true;  // the next step comes after all of them
  cancel_requests(nullptr);
  in_end_step_ = false;
  go_on_ending();
}

// One step after another, each after the event that it waits for. Drivers complete some requests
// before call_driver() returns: a loop, since recursion would find the session in mid-step.
void DaemonSession::go_on_ending() {
  if (in_end_step_ || state_ < State::Ending || state_ == State::Over) return;
  in_end_step_ = true;
  while (requests_.empty() && state_ != State::Over) {
    if (state_ == State::Ending) state_ = State::ClosingFiles;
    if (state_ == State::ClosingFiles && files_.empty()) state_ = State::ClosingZero;
    if (state_ == State::ClosingZero && zero_ == nullptr) {
      state_ = State::Over;
    } else {
      close_next_file();
    }
  }
  in_end_step_ = false;
  if (state_ == State::Over) host_.on_over(*this);
}

void DaemonSession::close_next_file() {
  File& file = state_ == State::ClosingFiles ? *files_.begin()->second : *zero_;
  Request& request = new_request(0, Code::Close);
  request.wants_answer = false;
  file.close_request = &request;
  send_close(request, file);
}

}  // namespace ib::softib
