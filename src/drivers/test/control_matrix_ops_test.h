// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For control_matrix_test.cpp: every control operation that a driver answers, each with the objects
// that it needs and an input with which it succeeds.
#pragma once

#include "base/buffers.h"
#include "drivers/test/driver_bench_test.h"
#include "platform/level.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ib::drivers::test {

using control::ChangeHcaIn;
using control::HcaAction;
using control::IndexIn;
using control::PowerState;

// `p` sends the request under test; the thread of `peer`, on another node, is the poster for which
// changes have to wait; `tool` ejects, puts to sleep and so on. `second` is another connection of
// the process of `p`.
struct MatrixWorld : Bench {
  explicit MatrixWorld(std::uint64_t max_memory = 0)
      : Bench(max_memory),
        p(*this, 11, "node0"),
        peer(*this, 12, "node1"),
        tool(*this, 13, "", false),
        second(*this, 11, "", false) {}

  void poster_enters_or_leaves() { poster_word().fetch_add(1); }
  bool is_poster_inside() { return poster_word().load() % 2 != 0; }
  template <class In>
  std::unique_ptr<Request> ask(Code code, const In& in) {
    return tool.start(tool.zero(), code, in);
  }
  static ChangeHcaIn hca_in(HcaAction action, const char* name = "softib0") {
    ChangeHcaIn in;
    put_text(in.node, "node0");
    put_text(in.ca, name);
    in.action = action;
    return in;
  }
  static control::SetPowerIn power_in(PowerState state, const char* node = "node0") {
    control::SetPowerIn in;
    put_text(in.node, node);
    in.state = state;
    return in;
  }
  static control::ChangePartitionIn partition_in(std::uint16_t pkey, const char* name,
                                                 bool remove) {
    control::ChangePartitionIn in;
    put_text(in.node, "node0");
    put_text(in.ca, "softib0");
    in.port = 1;
    in.pkey = pkey;
    in.remove = remove ? 1 : 0;
    put_text(in.name, name);
    return in;
  }
  static control::ChangeDriverIn driver_in(const char* name, bool unload) {
    control::ChangeDriverIn in;
    put_text(in.name, name);
    in.unload = unload ? 1 : 0;
    return in;
  }
  // An HCA can only be removed, and a driver unloaded, while no file is open there.
  void close_file_of_p() {
    p.close_file();
    p_has_file = false;
  }
  void close_files() {
    close_file_of_p();
    peer.close_file();
  }

  hca::Shared64& poster_word() { return arena().slot(peer.attach.slot)->threads[0].sequence; }

  bool p_has_file = true;
  bool is_asleep = false;  // requests to the HCA would not be completed
  Process p;
  Process peer;
  Process tool;
  Process second;
};

enum class Form { Ioctl, Direct };
enum class Buffers { Right, WrongInput, SmallOutput };

// A request with its buffers, and the record of its completion.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  // `prepared` is already started, so that it can be cancelled before it is sent.
  virtual void send(Form form, Buffers buffers, io::IrpRef prepared) = 0;
  virtual std::span<const std::byte> output() const = 0;
  virtual bool has_input() const = 0;
  virtual bool has_output() const = 0;

  io::IrpRef start() {
    io::IrpRef started = irp.start(&Call::on_done, this);
    started->file = file;
    started->in_handles[0] = FakeHost::handle();
    started->in_handles[1] = FakeHost::handle();
    return started;
  }
  bool done() const { return completions != 0; }
  // Create: the file is open if it succeeded.
  void close_opened(MatrixWorld& w) {
    if (opened == nullptr) return;
    if (done() && irp.status == Status::Ok) {
      const auto close = w.tool.start(*opened, Code::Close, Nothing{}, io::Major::Close);
      EXPECT_EQ(w.tool.finish<Nothing>(*close).status, Status::Ok);
    }
    opened.reset();
  }

  Code code = Code::Ping;
  io::Major major = io::Major::DeviceControl;
  io::RequestorMode mode = io::RequestorMode::User;  // of the ioctl form
  io::FileObject* file = nullptr;
  io::Client client;  // of a new file 0
  std::unique_ptr<io::FileObject> opened;
  io::Irp irp;
  int completions = 0;
  Level level = Level::Passive;  // level at which the request was completed

 private:
  static void on_done(io::Irp&, void* context) {
    Call& self = *static_cast<Call*>(context);
    ++self.completions;
    self.level = current_level();
  }
};

template <class In, class Out>
class CallOf final : public Call {
 public:
  explicit CallOf(const In& in) : in_(in) {}

  bool has_input() const override { return !std::is_same_v<In, Nothing>; }
  bool has_output() const override { return !std::is_same_v<Out, Nothing>; }
  std::span<const std::byte> output() const override {
    const auto whole = form_ == Form::Ioctl ? std::span<const std::byte>(out_bytes_)
                                            : std::as_bytes(std::span(&out_, 1));
    return whole.first(std::min(whole.size(), irp.out_size));
  }
  void send(Form form, Buffers buffers, io::IrpRef prepared) override {
    form_ = form;
    form == Form::Ioctl ? ioctl(buffers, std::move(prepared))
                        : direct(buffers, std::move(prepared));
  }

 private:
  void ioctl(Buffers buffers, io::IrpRef prepared) {
    if (has_input()) {
      const auto bytes = std::as_bytes(std::span(&in_, 1));
      in_bytes_.assign(bytes.begin(), bytes.end());
    }
    if (buffers == Buffers::WrongInput) in_bytes_.push_back(std::byte{0});
    out_bytes_.resize(has_output() ? sizeof(Out) : 0);
    if (buffers == Buffers::SmallOutput) out_bytes_.pop_back();
    prepared->major = major;
    prepared->requestor_mode = mode;
    prepared->code = static_cast<std::uint32_t>(code);
    prepared->in = in_bytes_;
    prepared->out = out_bytes_;
    io::call_driver(file->device(), std::move(prepared));
  }
  void direct(Buffers buffers, io::IrpRef prepared) {
    if (major == io::Major::DeviceControl) {
      if (buffers == Buffers::WrongInput) {
        return io::call_direct(file->device(), code, wrong_, out_, std::move(prepared));
      }
      if (buffers == Buffers::SmallOutput) {
        return io::call_direct(file->device(), code, in_, none_, std::move(prepared));
      }
      return io::call_direct(file->device(), code, in_, out_, std::move(prepared));
    }
    prepared->major = major;
    prepared->requestor_mode = io::RequestorMode::Kernel;
    prepared->code = static_cast<std::uint32_t>(code);
    prepared->in = {};
    prepared->out = buffers == Buffers::SmallOutput ? std::span<std::byte>{}
                                                    : std::as_writable_bytes(std::span(&out_, 1));
    io::call_driver(file->device(), std::move(prepared));
  }

  In in_;
  Out out_{};
  Nothing none_;
  std::array<std::byte, 3> wrong_{};
  std::vector<std::byte> in_bytes_;
  std::vector<std::byte> out_bytes_;
  Form form_ = Form::Ioctl;
};

template <class Out = Nothing, class In>
std::unique_ptr<Call> call_of(const In& in) {
  return std::make_unique<CallOf<In, Out>>(in);
}

struct Op {
  Code code;
  const char* name;
  // Makes the objects and the request. Members that it leaves unset are set from `code`: the file
  // is that of the HCA or file 0 of `p`.
  std::unique_ptr<Call> (*prepare)(MatrixWorld& w);
  // Ends the wait of the request if it waits for more than posters.
  void (*let_go)(MatrixWorld& w) = nullptr;
};

// control_matrix_hca_test.cpp, control_matrix_root_test.cpp.
std::span<const Op> hca_operations();
std::span<const Op> root_operations();

}  // namespace ib::drivers::test
