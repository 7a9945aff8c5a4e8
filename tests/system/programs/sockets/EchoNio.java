// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EchoNio PORT [SERVER CONNECTIONS]: an echo server over a selector, or its client, which compares what comes back.
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Random;

public class EchoNio {
  static final int SIZE = 1 << 18;

  static void serve(int port) throws Exception {
    Selector selector = Selector.open();
    ServerSocketChannel listener = ServerSocketChannel.open();
    listener.bind(new InetSocketAddress("0.0.0.0", port));
    listener.configureBlocking(false);
    listener.register(selector, SelectionKey.OP_ACCEPT);
    while (true) {
      selector.select();
      for (SelectionKey key : selector.selectedKeys()) {
        if (key.isAcceptable()) {
          SocketChannel channel = listener.accept();
          if (channel == null) continue;
          channel.configureBlocking(false);
          channel.register(selector, SelectionKey.OP_READ, ByteBuffer.allocateDirect(30000));
        } else {
          echo(key);
        }
      }
      selector.selectedKeys().clear();
    }
  }

  static void echo(SelectionKey key) throws Exception {
    SocketChannel channel = (SocketChannel) key.channel();
    ByteBuffer buffer = (ByteBuffer) key.attachment();
    if (key.isReadable() && channel.read(buffer) < 0) {
      channel.close();
      return;
    }
    buffer.flip();
    channel.write(buffer);
    boolean all = !buffer.hasRemaining();
    buffer.compact();
    key.interestOps(all ? SelectionKey.OP_READ : SelectionKey.OP_WRITE);
  }

  static class Conversation {
    final ByteBuffer out = ByteBuffer.allocate(SIZE);
    final ByteBuffer in = ByteBuffer.allocate(SIZE);
  }

  static void connect(int port, String server, int count) throws Exception {
    Selector selector = Selector.open();
    Random random = new Random(20261129);
    for (int i = 0; i < count; i++) {
      Conversation one = new Conversation();
      random.nextBytes(one.out.array());
      SocketChannel channel = SocketChannel.open();
      channel.configureBlocking(false);
      channel.connect(new InetSocketAddress(server, port));
      channel.register(selector, SelectionKey.OP_CONNECT, one);
    }
    int right = 0;
    for (int left = count; left > 0; ) {
      selector.select();
      for (SelectionKey key : selector.selectedKeys()) {
        SocketChannel channel = (SocketChannel) key.channel();
        Conversation one = (Conversation) key.attachment();
        if (key.isConnectable() && channel.finishConnect()) key.interestOps(SelectionKey.OP_READ | SelectionKey.OP_WRITE);
        if (key.isWritable()) {
          channel.write(one.out);
          if (!one.out.hasRemaining()) key.interestOps(SelectionKey.OP_READ);
        }
        if (key.isReadable() && channel.read(one.in) < 0) throw new Exception("an early end");
        if (!one.in.hasRemaining()) {
          if (java.util.Arrays.equals(one.in.array(), one.out.array())) right++;
          channel.close();
          left--;
        }
      }
      selector.selectedKeys().clear();
    }
    System.out.println("all right: " + right);
  }

  public static void main(String[] words) throws Exception {
    if (words.length == 1) serve(Integer.parseInt(words[0]));
    else connect(Integer.parseInt(words[0]), words[1], Integer.parseInt(words[2]));
  }
}
